"""`precision = "bfloat16"`: the forward pass of a training step is under autocast, and nothing else is."""

from pathlib import Path

import pytest
import torch
from small_runs import train

from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start

SMALL = recipe_files.load("digits").replace(
    model="resnet20", width=2, epochs=2, batch_size=128, examples=600, lr=0.4, prior_sigma=1.0, h0=0.5, every=3
)
HALF = SMALL.replace(precision="bfloat16")


def trained(recipe: Recipe, folder: Path) -> dict[str, torch.Tensor]:
    run = start(recipe, folder)
    run.train()
    return dict(run.net.state_dict())


def test_training_differs_by_rounding_and_keeps_its_parameters_in_float32(tmp_path):
    full, half = trained(SMALL, tmp_path / "full"), trained(HALF, tmp_path / "half")
    assert {name: value.dtype for name, value in full.items()} == {name: value.dtype for name, value in half.items()}
    assert not all(torch.equal(full[name], half[name]) for name in full)
    losses = [RunFolder(tmp_path / name).metrics()[-1].nll for name in ("full", "half")]
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


def test_a_run_goes_on_bit_for_bit(tmp_path):
    whole = train(HALF, tmp_path / "whole")
    run = start(HALF, tmp_path / "parts")
    run.train(on_epoch=lambda _line: run.stop("a test"))
    assert not run.done
    again, _ = resume(tmp_path / "parts")
    assert again.recipe.precision == "bfloat16"
    again.train()
    whole_run, _ = resume(whole)
    for name, value in whole_run.net.state_dict().items():
        assert torch.equal(value, again.net.state_dict()[name]), name


def test_autocast_is_on_in_the_forward_pass_alone(tmp_path):
    run = start(HALF, tmp_path / "run")
    seen = []
    nll = run.training.job.nll
    run.net.register_forward_hook(lambda *_: seen.append(torch.is_autocast_enabled("cpu")))
    object.__setattr__(
        run.training.job, "nll", lambda *given: seen.append(torch.is_autocast_enabled("cpu")) or nll(*given)
    )
    x, y = next(iter(run.batches.epoch(0, 0)))
    run.step(x, y)
    assert seen == [True, False]


def test_another_precision_is_refused_with_those_that_there_are():
    with pytest.raises(RecipeError, match=r"precision='float16'.*float32.*bfloat16"):
        SMALL.replace(precision="float16")
