"""The quality of the predictions on the test images: evaluation.json."""

import json

import pytest
from small_runs import finished

import ssvi
from ssvi.evaluation import FinishedRun, evaluate_run
from ssvi.evaluation.results import RunEvaluation
from ssvi.training.records import from_plain, without_defaults


@pytest.mark.parametrize("method", ["ssvi", "vi", "deterministic"])
def test_the_command_and_python_agree(method):
    run = FinishedRun(finished(method))
    evaluation = evaluate_run(run, samples=3)
    same = ssvi.evaluate(FinishedRun(finished(method)).net, run.batches(run.test), 3)
    assert {name: estimate.value for name, estimate in evaluation.metrics.items()} == {
        name: getattr(same, name) for name in evaluation.metrics
    }
    assert evaluation.samples == (1 if method == "deterministic" else 3)


def test_json_loses_nothing(run):
    evaluation = evaluate_run(run, samples=2)
    text = json.dumps(without_defaults(evaluation), allow_nan=False)
    assert from_plain(RunEvaluation, json.loads(text)) == evaluation


def test_evaluation_json_has_the_keys_of_the_version_before_and_the_decisions(run):
    values = without_defaults(evaluate_run(run, samples=2))
    assert set(values) == {
        "data", "examples", "samples", "seed", "metrics", "point", "at_mean", "entropy", "mutual_information", "cost",
        "reliability", "risk_coverage", "images", "asked", "decisions",
    }  # fmt: skip
    assert set(values["metrics"]["nll"]) == {"value", "low", "high"}
    assert set(values["reliability"]) == {"count", "confidence", "accuracy"}
    assert set(values["images"]["uncertain"][0]) == {
        "index", "label", "guess", "probability", "entropy", "mutual_information",
    }  # fmt: skip


def test_at_the_mean_one_network_is_evaluated(run):
    evaluation = evaluate_run(run, samples=2)
    with ssvi.at_mean(run.net):
        at_mean = ssvi.evaluate(run.net, run.batches(run.test))
    assert evaluation.point == "posterior mean"
    assert evaluation.at_mean == {name: getattr(at_mean, name) for name in evaluation.metrics}


def test_risks_and_reliability_are_those_of_the_metrics(run):
    evaluation = evaluate_run(run)
    assert evaluation.risk_coverage.risk[-1] == pytest.approx(1 - evaluation.metrics["accuracy"].value)
    assert sum(evaluation.reliability.count) == evaluation.examples


def test_an_empty_bin_has_no_means(run):
    bins = evaluate_run(run, samples=2).reliability
    empty = [i for i, count in enumerate(bins.count) if count == 0]
    assert empty
    assert [i for i, confidence in enumerate(bins.confidence) if confidence is None] == empty
    assert [i for i, accuracy in enumerate(bins.accuracy) if accuracy is None] == empty


def test_the_hardest_images_come_first(run):
    images = evaluate_run(run).images
    outputs = run.outputs(run.test, 5, 0, "")
    assert all(image.guess != image.label for image in images.wrong)
    assert [image.probability for image in images.wrong] == sorted(
        (image.probability for image in images.wrong), reverse=True
    )
    assert images.uncertain[0].entropy == outputs.entropy.max().item()
