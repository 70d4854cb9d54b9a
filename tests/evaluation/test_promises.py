"""Decisions in evaluation.json: chosen on validation images, and what they do on test images."""

import shutil

import pytest
import torch
from small_runs import finished

from ssvi import decisions, metrics
from ssvi.decisions import CostMatrix
from ssvi.evaluation import DecisionSettings, FinishedRun, evaluate_run
from ssvi.evaluation.decision_wording import decision_rows, set_sizes
from ssvi.evaluation.promises import evaluate_costs, evaluate_decisions, validation_outputs
from ssvi.evaluation.results import RunEvaluation
from ssvi.inference.evaluate import Outputs
from ssvi.training.records import from_plain, without_defaults


def outputs(n: int, sharpness: float, seed: int) -> Outputs:
    """Labels that are drawn from softmax(z), and one sample that says softmax(sharpness * z)."""
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(n, 4, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)
    return Outputs((sharpness * z).softmax(1).unsqueeze(0), labels)


@pytest.fixture(scope="module")
def pair():
    return outputs(2000, 3.0, 0), outputs(4000, 3.0, 1)


@pytest.fixture(scope="module")
def quality(pair):
    return evaluate_decisions(*pair, DecisionSettings(level=0.9, max_error=0.2))


def test_scaling_mends_a_network_that_is_too_certain(pair, quality):
    _, test = pair
    assert quality.scaled.temperature == pytest.approx(3.0, rel=0.1)
    assert quality.scaled.nll < metrics.nll(test.probs, test.labels)
    assert quality.scaled.ece < metrics.ece(test.probs, test.labels) / 3


def test_the_sets_cover_what_was_promised(quality):
    sets = quality.sets
    assert sets.coverage_low < sets.coverage < sets.coverage_high
    assert sets.coverage == pytest.approx(0.9, abs=0.02)
    assert sum(sets.sizes) == pytest.approx(1)
    assert sets.mean_size == pytest.approx(sum(size * share for size, share in enumerate(sets.sizes)))
    assert sets.coverages == pytest.approx(sets.levels, abs=0.03)
    assert sets.coverages[sets.levels.index(0.9)] == sets.coverage


def test_the_errors_among_the_answers_are_those_above_no_threshold(pair, quality):
    _, test = pair
    answered = test.entropy <= quality.answers.entropy
    right = test.probs.argmax(1) == test.labels
    assert quality.answers.answered == answered.double().mean()
    assert quality.answers.error == pytest.approx(1 - right[answered].double().mean().item())
    assert quality.answers.error < 0.2 < 1 - right.double().mean()


def test_what_cannot_be_promised_is_said(pair):
    few = Outputs(pair[0].drawn[:, :5], pair[0].labels[:5])
    quality = evaluate_decisions(few, pair[1])
    assert (quality.answers.entropy, quality.answers.answered, quality.answers.needed) == (None, None, 46)
    assert (quality.sets.threshold, quality.sets.coverage, quality.sets.mean_size) == (None, 1.0, 4.0)
    assert quality.sets.levels == [0.5, 0.6, 0.7, 0.8]


def test_costs_by_hand():
    probs = torch.tensor([[[0.9, 0.1], [0.6, 0.4]]], dtype=torch.float64)
    matrix = CostMatrix(("a", "b"), ("act on b", "act on a"), ((1.0, 0.0), (0.0, 10.0)))
    test = Outputs(probs, torch.tensor([0, 1]))
    costs = evaluate_costs(test, matrix)
    assert costs.shares == [1.0, 0.0], "expected costs are (0.9, 1) and (0.6, 4)"
    assert (costs.expected, costs.realised) == pytest.approx((0.75, 0.5))
    assert (costs.expected_most_probable, costs.realised_most_probable) == pytest.approx((2.5, 5.0))


def test_a_run_is_judged_by_its_own_validation_images(run):
    evaluation = evaluate_run(run, samples=2)
    validation = run.outputs(run.validation, 2, 0, "")
    assert evaluation.decisions.validation_images == len(validation.labels)
    assert evaluation.decisions.scaled.temperature == decisions.fit_temperature(validation.probs, validation.labels)
    assert evaluation.decisions.sets.threshold == decisions.class_threshold(validation.probs, validation.labels, 0.9)


def test_without_validation_images_there_are_no_decisions(tmp_path):
    run = FinishedRun(shutil.copytree(finished(validation=0.0), tmp_path / "run"))
    assert validation_outputs(run, 1, 0) is None
    evaluation = evaluate_run(run, samples=1)
    assert evaluation.decisions is None
    assert decision_rows(evaluation) == []


def test_a_file_of_the_version_before_is_read(run):
    values = without_defaults(evaluate_run(run, samples=1))
    del values["decisions"]
    assert from_plain(RunEvaluation, values).decisions is None


def test_sizes_are_few_bars(quality):
    assert list(set_sizes(quality.sets)) == ["empty", "1", "2", "3", "4"]
    many = evaluate_decisions(ten := Outputs(torch.full((1, 50, 10), 0.1), torch.arange(50) % 10), ten)
    assert set_sizes(many.sets) == pytest.approx({"empty": 0, "1": 0, "2": 0, "3": 0, "4": 0, "5 or more": 1})
