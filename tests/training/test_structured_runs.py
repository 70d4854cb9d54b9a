"""Structures in recipes, run folders and model files: kept by training, resume, save and load."""

import json
import os
import signal

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from small_runs import train
from torch import nn

import ssvi
from ssvi.methods.settings import RecipeError
from ssvi.training import model_file, recipe_files
from ssvi.training.model_header import ModelFileError
from ssvi.training.run import finish
from ssvi.training.start import resume, start

SMALL = recipe_files.load("digits").replace(
    epochs=3, width=8, batch_size=128, every=2, checkpoint_steps=2, lr=0.4, prior_sigma=1.0, h0=0.5
)
STRUCTURES = {"block:4": 0.1, "2:4": 0.5}


def units(net: nn.Module) -> list[str]:
    """The structure of each layer, which its support has."""
    posteriors = [layer.posterior for _, layer in ssvi.layers(net)]
    assert all(posterior.units.admits(posterior.index) for posterior in posteriors)
    return [str(posterior.units) for posterior in posteriors]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_run_keeps_its_structure_and_goes_on_to_the_bit(structure, tmp_path):
    recipe = SMALL.replace(structure=structure, density=STRUCTURES[structure])
    whole = train(recipe, tmp_path / "whole")
    net = model_file.load(whole)
    assert structure in units(net)
    assert units(net)[0] == ""  # the first layer is dense

    start(recipe, tmp_path / "cut").train(lambda n: os.kill(os.getpid(), signal.SIGTERM) if n.step == 17 else None)
    again, _ = resume(tmp_path / "cut")
    assert structure in units(again.training.net)
    again.train()
    finish(again)
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


@pytest.mark.parametrize("method", ["rigl", "set", "static", "ssvi-lrt"])
def test_every_method_with_a_support_takes_a_structure(method, tmp_path):
    recipe = recipe_files.load("digits", method).replace(
        epochs=1, width=8, batch_size=128, structure="block:4", density=0.1
    )
    net = model_file.load(train(recipe, tmp_path / method))
    assert units(net).count("block:4") >= 2


@pytest.mark.parametrize(("structure", "density"), [("block:8", 0.25), ("1:4", None)])
@pytest.mark.parametrize("point", [False, True])
def test_a_users_own_network_comes_back_with_its_structure(structure, density, point, tmp_path):
    def plain() -> nn.Module:
        return nn.Sequential(nn.Conv2d(4, 16, 3), nn.Flatten(), nn.Linear(16, 10, bias=False))

    bnn = ssvi.to_bnn(plain(), density, structure=structure, point=point)
    ssvi.save(bnn, tmp_path / "m.safetensors")
    again = ssvi.load(tmp_path / "m.safetensors", net=plain())
    assert units(again) == units(bnn) == ([structure] * 2 if structure == "1:4" else ["block:8", "block:5"])
    assert all(torch.equal(a, b) for a, b in zip(bnn.state_dict().values(), again.state_dict().values(), strict=True))


def changed(path, change) -> None:
    """Rewrite a model file with another header or other tensors; its seal is left out."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["ssvi"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    change(header, tensors)
    del header["sha256"]
    save_file(tensors, path, {"ssvi": json.dumps(header)})


def test_a_file_whose_support_breaks_its_structure_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    bnn = ssvi.to_bnn(nn.Linear(6, 8, bias=False), 0.25, structure="block:4", seed=0)
    ssvi.save(bnn, path)

    def move(header, tensors):
        live = set(tensors["posterior.index"].tolist())
        moved = sorted({*live} - {max(live)} | {next(i for i in range(48) if i not in live)})
        tensors["posterior.index"] = torch.tensor(moved, dtype=torch.int32)

    changed(path, move)
    with pytest.raises(ModelFileError, match="not those of block:4"):
        ssvi.load(path, net=nn.Linear(6, 8, bias=False))
    ssvi.save(bnn, path)
    changed(path, lambda header, _: header["posteriors"][""].update(structure="block:x"))
    with pytest.raises(ModelFileError, match="structure='block:x'"):
        ssvi.load(path, net=nn.Linear(6, 8, bias=False))


def test_a_recipe_with_an_unknown_structure_is_refused():
    with pytest.raises(RecipeError, match="structure='block' must be none, block:B or N:M"):
        SMALL.replace(structure="block")
