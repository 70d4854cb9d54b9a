"""A run ends with BatchNorm's statistics for each theta of its evaluations."""

import pytest
import torch
from small_runs import finished, train

import ssvi
from ssvi.evaluation import FinishedRun
from ssvi.nn.theta_statistics import fitted, stored
from ssvi.training import recipe_files
from ssvi.training.start import start

SMALL = recipe_files.load("digits").replace(epochs=1, width=4, batch_size=128, validation=0.5)


@pytest.mark.parametrize("method", ["ssvi", "ssvi-lrt", "vi", "ivon", "vd"])
def test_the_network_of_a_run_predicts_as_it_was_evaluated(method):
    run = FinishedRun(finished(method))
    assert {statistics.samples for statistics in fitted(run.net).values()} == {20}
    result = run.folder.result
    x = torch.cat([x for x, _ in run.batches(run.test)])
    probs = ssvi.predict(run.net, x, run.recipe.samples)
    assert ssvi.metrics.nll(probs, run.test.y) == pytest.approx(result["nll"], rel=1e-5)
    assert ssvi.evaluate(run.net, run.batches(run.test), 20).samples == 20


@pytest.mark.parametrize("method", ["deterministic", "rigl", "ensemble"])
def test_points_have_none(method):
    assert not stored(FinishedRun(finished(method)).net)


def test_they_can_be_left_out_and_change_nothing_else(tmp_path):
    without = FinishedRun(train(SMALL.replace(batchnorm_batches=0), tmp_path / "without"))
    with_them = FinishedRun(train(SMALL.replace(samples=21, batchnorm_batches=2), tmp_path / "with"))
    assert not stored(without.net)
    assert {statistics.samples for statistics in stored(with_them.net).values()} == {21}
    before, state = without.net.state_dict(), with_them.net.state_dict()
    assert before
    assert all(torch.equal(value, state[key]) for key, value in before.items())


def test_they_are_of_images_like_those_of_the_training(tmp_path):
    """Images that are shifted and padded have other means than the images as they are, and so have the activations."""
    run = start(SMALL.replace(augment="crop"), tmp_path / "run")
    seen = [x for x, _ in run.batches.epoch(0)]
    assert all(torch.equal(x, y) for x, y in zip(run.training.job.inputs(), seen, strict=False))


def test_networks_without_batchnorm_store_nothing(tmp_path):
    run = FinishedRun(train(SMALL.replace(model="mlp"), tmp_path / "mlp"))
    assert not any("per_theta" in key for key in run.net.state_dict())
