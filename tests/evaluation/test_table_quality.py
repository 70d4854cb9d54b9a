"""`ssvi evaluate` on tables: the numbers are those of `ssvi.metrics` and `ssvi.decisions`, computed by hand."""

import json
from itertools import pairwise

import pytest
import torch
from small_tables import finished_table

import ssvi
from ssvi import decisions, metrics
from ssvi.errors import UserError
from ssvi.evaluation import DecisionSettings, FinishedRun, TableRun, evaluate_table
from ssvi.evaluation.interval_promises import evaluate_intervals
from ssvi.evaluation.number_results import NumberRunEvaluation
from ssvi.evaluation.results import RunEvaluation
from ssvi.inference.evaluate import NumberOutputs, evaluate_outputs
from ssvi.likelihoods import Gaussian
from ssvi.training.records import from_plain, without_defaults


def table(method="ssvi", target="price", **changes):
    return TableRun(FinishedRun(finished_table(method, target, **changes)))


def truth(run, rows):
    return rows.y.double() * run.learnt.target.std + run.learnt.target.mean


@pytest.mark.parametrize("method", ["ssvi", "deterministic", "ensemble"])
def test_the_numbers_are_those_of_the_metrics(method):
    run = table(method)
    found = evaluate_table(run, samples=3, seed=1)
    prediction, y = run.numbers(run.data.test.x, 3, 1), truth(run, run.data.test)
    by_hand = {
        "rmse": metrics.rmse(prediction.mean, y),
        "mae": metrics.mae(prediction.mean, y),
        "nll": -prediction.log_prob(y).mean().item(),
        "crps": prediction.crps(y).mean().item(),
        "coverage_50": metrics.coverage(*prediction.interval(0.5), y),
        "width_50": metrics.interval_width(*prediction.interval(0.5)),
        "coverage_90": metrics.coverage(*prediction.interval(0.9), y),
        "width_90": metrics.interval_width(*prediction.interval(0.9)),
        "pit_error": metrics.pit_error(prediction.cdf(y)),
        "model_share": (prediction.model_variance / prediction.variance).mean().item(),
    }
    assert {name: estimate.value for name, estimate in found.metrics.items()} == pytest.approx(by_hand, rel=1e-6)
    low, high = metrics.bootstrap(metrics.rmse, prediction.mean, y)
    assert (found.metrics["rmse"].low, found.metrics["rmse"].high) == pytest.approx((low, high), rel=1e-6)
    assert found.samples == prediction.samples


def test_at_the_mean_one_network_is_evaluated():
    run = table()
    found, y = evaluate_table(run, samples=2), truth(run, run.data.test)
    with ssvi.at_mean(run.run.net):
        at_mean = run.numbers(run.data.test.x, 1, 0)
    assert found.point == "posterior mean"
    assert found.at_mean["rmse"] == pytest.approx(metrics.rmse(at_mean.mean, y), rel=1e-6)
    assert found.at_mean["model_share"] == 0
    assert evaluate_table(table("ensemble")).point == "last network"


def test_conformalised_intervals_stand_beside_the_raw_ones():
    run = table()
    found = evaluate_table(run, 3, 0, settings=DecisionSettings(level=0.6)).intervals
    rows, test = run.validation, run.data.test
    of_validation, of_test = (run.numbers(each.x, 3, 0).interval(0.6) for each in (rows, test))
    threshold = decisions.interval_threshold(*of_validation, truth(run, rows), 0.6)
    made, y = decisions.intervals(*of_test, threshold), truth(run, test)
    assert (found.level, found.validation_rows) == (0.6, len(rows))
    assert found.threshold == pytest.approx(threshold, rel=1e-6)
    assert found.raw_coverage.value == pytest.approx(metrics.coverage(*of_test, y))
    assert found.raw_width.value == pytest.approx(metrics.interval_width(*of_test), rel=1e-6)
    assert found.coverage.value == pytest.approx(made.contain(y).double().mean().item())
    assert found.width.value == pytest.approx(made.width.mean().item(), rel=1e-6)


def test_conformalised_intervals_of_a_network_that_is_far_too_certain_keep_the_promise():
    generator = torch.Generator().manual_seed(0)

    def rows(n):
        outputs = torch.zeros(1, n, 1, dtype=torch.float64)
        return NumberOutputs(
            Gaussian(noise=0.1).predictive(outputs), torch.randn(n, generator=generator, dtype=torch.float64)
        )

    found = evaluate_intervals(rows(2000), rows(2000), 0.9)
    assert found.raw_coverage.value < 0.2
    assert found.coverage.value == pytest.approx(0.9, abs=0.03)
    assert found.width.value == pytest.approx(2 * 1.645, rel=0.1), "the 90 % interval of a standard normal number"


@pytest.mark.parametrize(("validation", "level"), [(0.0, 0.9), (0.1, 0.99)])
def test_without_enough_validation_rows_nothing_is_promised(validation, level):
    found = evaluate_table(table(validation=validation), 2, settings=DecisionSettings(level=level)).intervals
    assert found.threshold is None
    assert found.coverage is None
    assert 0 < found.raw_coverage.value <= 1


def test_calibration_and_rows_are_those_of_the_test_rows():
    run = table()
    found = evaluate_table(run, 3)
    prediction, y = run.numbers(run.data.test.x, 3, 0), truth(run, run.data.test)
    assert sum(found.calibration.pit) == pytest.approx(1)
    inside = found.calibration.coverages[found.calibration.levels.index(0.9)]
    assert inside == pytest.approx(found.metrics["coverage_90"].value)
    errors = [abs(row.mean - row.target) for row in found.rows.wrong]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == pytest.approx((prediction.mean - y).abs().max().item(), rel=1e-6)
    assert found.rows.unsure[0].index == prediction.model_variance.argmax().item()
    means = [row.mean for row in found.rows.spread]
    assert means == sorted(means)
    assert (means[0], means[-1]) == pytest.approx(
        (prediction.mean.min().item(), prediction.mean.max().item()), rel=1e-6
    )
    assert evaluate_table(table("deterministic")).rows.unsure == [], "it has no model uncertainty"


@pytest.mark.parametrize(("target", "kind"), [("price", NumberRunEvaluation), ("sold", RunEvaluation)])
def test_json_loses_nothing(target, kind):
    found = evaluate_table(table(target=target), 2)
    text = json.dumps(without_defaults(found), allow_nan=False)
    assert from_plain(kind, json.loads(text)) == found


def test_classes_of_rows_are_evaluated_as_those_of_images():
    run = table(target="sold")
    found = evaluate_table(run, 3, settings=DecisionSettings(level=0.8))
    test, rows = run.data.test, run.validation
    probs = run.classes(test.x, 3, 0).probs
    assert found.metrics["nll"].value == pytest.approx(metrics.nll(probs, test.y), rel=1e-6)
    assert found.decisions.validation_images == len(rows)
    threshold = decisions.class_threshold(run.classes(rows.x, 3, 0).probs, rows.y, 0.8)
    assert found.decisions.sets.threshold == pytest.approx(threshold, rel=1e-6)
    with ssvi.at_mean(run.run.net):
        at_mean = run.classes(test.x, 1, 0)
    labelled = type(at_mean)(at_mean.drawn, test.y)
    assert found.at_mean["brier"] == pytest.approx(evaluate_outputs(labelled).brier, rel=1e-6)


def test_the_cost_counts_a_row():
    run = table()
    found = evaluate_table(run, 3).cost
    widths = (run.learnt.features, 16, 16, 1)
    dense = sum(a * b for a, b in pairwise(widths))
    assert found.weights == dense
    assert found.inference_flops_dense_vi == 2 * 3 * dense
    assert found.live_weights < dense


def test_a_run_without_test_rows_says_what_to_do():
    with pytest.raises(UserError, match=r"no test rows.*--test-share"):
        evaluate_table(table(test_share=0.0))
