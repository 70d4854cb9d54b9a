"""`micro_batches`: the parts of a batch pass one after the other, and make one step."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch

from ssvi.nn.layers import posteriors
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run import Run
from ssvi.training.start import resume, start

STEPS = 5


def recipe(method: str, **changes: object) -> Recipe:
    """A network without BatchNorm, whose statistics would be those of a part."""
    settings: dict[str, object] = {"model": "mlp", "width": 8, "epochs": 1, "batch_size": 30, "examples": 300}
    if method != "deterministic":
        settings |= {"every": 2, "until": 1.0}
    return recipe_files.load("digits", method).replace(**settings, **changes)


def after_some_steps(recipe: Recipe, folder: Path) -> Run:
    run = start(recipe, folder)
    for _, (x, y) in zip(range(STEPS), run.batches.epoch(0, 0), strict=False):
        run.step(x, y)
    return run


@pytest.mark.parametrize("parts", [3, 4])
@pytest.mark.parametrize("method", ["deterministic", "rigl"])
def test_without_noise_the_parts_make_the_step_of_the_whole_batch(method, parts, tmp_path):
    whole = after_some_steps(recipe(method), tmp_path / "whole")
    run = after_some_steps(recipe(method, micro_batches=parts), tmp_path / "parts")
    for name, value in whole.net.state_dict().items():
        assert torch.allclose(value, run.net.state_dict()[name], rtol=1e-4, atol=1e-6), name
    assert run.progress.nll == pytest.approx(whole.progress.nll, rel=1e-4)
    assert run.progress.moved == whole.progress.moved
    assert (run.progress.moved > 0) == (method == "rigl")


def test_by_natural_gradients_each_part_has_a_theta_of_its_own(tmp_path):
    run = start(recipe("ssvi", micro_batches=3), tmp_path / "run")
    first = next(iter(posteriors(run.net).values()))
    thetas: list[torch.Tensor] = []
    run.net.register_forward_hook(lambda *_: thetas.append(first.theta.detach().clone()))
    used: list[int] = []
    run.training.optimizer.register_step_pre_hook(lambda optimizer, *_: used.append(optimizer._draws.samples))
    x, y = next(iter(run.batches.epoch(0, 0)))
    run.step(x, y)
    assert len(thetas) == 3
    assert not any(torch.equal(a, b) for a, b in pairwise(thetas))
    assert used == [3]


def test_natural_gradients_are_means_over_the_parts(tmp_path):
    run = start(recipe("ssvi", micro_batches=3, temperature=1e-9), tmp_path / "run")  # hardly any noise
    whole = start(recipe("ssvi", temperature=1e-9), tmp_path / "whole")
    x, y = next(iter(run.batches.epoch(0, 0)))
    for each in (run, whole):
        each.step(x, y)
    momenta = [
        {name: r.training.optimizer.state[p.mu]["g"] for name, p in posteriors(r.net).items()} for r in (run, whole)
    ]
    for name, g in momenta[1].items():
        assert torch.allclose(momenta[0][name], g, rtol=1e-3, atol=1e-6), name


def test_beta_of_local_reparameterisation_rises_once_per_step(tmp_path):
    run = after_some_steps(recipe("ssvi-lrt", micro_batches=3), tmp_path / "run")
    assert run.training.loss.step == STEPS


def test_a_run_goes_on_bit_for_bit(tmp_path):
    cut = recipe("ssvi", micro_batches=2, checkpoint_steps=3)
    whole = start(cut, tmp_path / "whole")
    whole.train()
    run = start(cut, tmp_path / "run")
    run.train(on_step=lambda numbers: run.stop("a test") if numbers.nll else None)
    again, _ = resume(tmp_path / "run")
    assert 0 < again.progress.step < len(again.batches)
    again.train()
    for name, value in whole.net.state_dict().items():
        assert torch.equal(value, again.net.state_dict()[name]), name


def test_more_parts_than_examples_are_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"micro_batches=31 must be at most 30"):
        start(recipe("ssvi", micro_batches=31), tmp_path / "run")
    assert not (tmp_path / "run").exists()
