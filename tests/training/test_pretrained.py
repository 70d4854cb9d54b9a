"""Runs that start from trained weights."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from small_runs import finished
from torch import Tensor, nn

import ssvi
from ssvi.nn import models
from ssvi.training import recipe_files
from ssvi.training.pretrained import start_from
from ssvi.training.recipe import RecipeError
from ssvi.training.start import resume, start


def lenet(classes: int = 10, width: int = 8) -> nn.Module:
    return models.build("lenet", classes=classes, channels=1, size=8, width=width)


def same(net: nn.Module, state: dict[str, Tensor]) -> bool:
    return all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


def test_a_run_of_a_plain_network_gives_its_weights():
    run = finished("deterministic")
    assert same(start_from(lenet(), str(run)), ssvi.load(run).state_dict())


def test_a_bayesian_run_gives_its_means():
    run = finished()
    assert same(start_from(lenet(), str(run)), ssvi.mean(ssvi.load(run), dense=True).state_dict())


@pytest.mark.parametrize("suffix", ["pt", "safetensors", "checkpoint.pt"])
def test_states_of_torch_and_safetensors(tmp_path: Path, suffix):
    torch.manual_seed(1)
    state, file = lenet().state_dict(), tmp_path / f"weights.{suffix}"
    if suffix == "safetensors":
        save_file(state, file)
    else:
        torch.save(state if suffix == "pt" else {"state_dict": state, "epoch": 3}, file)
    torch.manual_seed(2)
    assert same(start_from(lenet(), str(file)), state)


def test_a_head_for_other_classes_starts_fresh_and_is_named(tmp_path: Path):
    torch.save(lenet(classes=7).state_dict(), tmp_path / "seven.pt")
    with pytest.warns(UserWarning, match=r"start fresh.*\(7, \d+\) in the file, \(10, \d+\) in the network"):
        start_from(lenet(), str(tmp_path / "seven.pt"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"conv9.weight": torch.zeros(3)}, "another network"),
        ([1, 2], "is no state"),
        ({"epoch": 3}, "is no state"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, content, message):
    file = tmp_path / "weights.pt"
    file.write_bytes(b"nothing") if content is None else torch.save(content, file)
    with pytest.raises(RecipeError, match=message):
        start_from(lenet(), str(file))


def test_a_network_of_another_width_is_refused(tmp_path: Path):
    """The bias of its last layer would fit, and nothing else."""
    torch.save(lenet(width=4).state_dict(), tmp_path / "narrow.pt")
    with pytest.raises(RecipeError, match=r"fits \d% of the parameters by their shapes; take its width"):
        start_from(lenet(), str(tmp_path / "narrow.pt"))


def test_no_file_leaves_no_run(tmp_path: Path):
    recipe = recipe_files.load("digits", "ssvi").replace(width=8, pretrained=str(tmp_path / "absent.pt"))
    with pytest.raises(RecipeError, match=r"absent\.pt"):
        start(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_starts_there_and_can_be_resumed_from_another_folder(tmp_path: Path, monkeypatch):
    torch.manual_seed(1)
    state = lenet().state_dict()
    torch.save(state, tmp_path / "weights.pt")
    monkeypatch.chdir(tmp_path)
    recipe = recipe_files.load("digits", "deterministic").replace(width=8, epochs=1, pretrained="weights.pt")
    run = start(recipe, tmp_path / "run")
    assert same(run.net, state)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert same(resume(tmp_path / "run")[0].net, state)


@pytest.mark.parametrize("method", ["ssvi", "ssvi-lrt", "rigl"])
def test_the_largest_of_the_trained_weights_live_at_the_start(tmp_path: Path, method):
    torch.manual_seed(1)
    state = lenet().state_dict()
    torch.save(state, tmp_path / "weights.pt")
    settings = {"width": 8, "epochs": 1, "pretrained": str(tmp_path / "weights.pt"), "support": "magnitude"}
    run = start(recipe_files.load("digits", method).replace(**settings), tmp_path / "run")
    for name, layer in ssvi.layers(run.net):
        if layer.density < 1:
            weight = state[f"{name}.weight"].flatten()
            assert torch.equal(layer.mu.detach(), weight[layer.index.long()])
            assert layer.mu.abs().mean() > 1.5 * weight.abs().mean()
