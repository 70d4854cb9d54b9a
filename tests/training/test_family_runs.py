"""Families of posteriors in recipes, run folders and model files: trained, resumed, saved and loaded."""

import json
import os
import signal
from dataclasses import dataclass

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from small_runs import train
from torch import nn

import ssvi
from ssvi.families import Laplace, StudentT
from ssvi.methods.settings import RecipeError
from ssvi.training import model_file, recipe_files
from ssvi.training.model_header import FORMAT, OF_A_FAMILY, ModelFileError
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start

SMALL = recipe_files.load("digits", "ssvi-lrt").replace(
    epochs=4,
    width=8,
    density=0.3,
    batch_size=64,
    every=5,
    checkpoint_steps=2,
    lr=0.003,
    optimizer="adam",
    warmup=0.9,
    validation=0.2,
)


def families_of(net: nn.Module) -> set[object]:
    return {layer.posterior.family for _, layer in ssvi.layers(net)}


@pytest.mark.parametrize("posterior", ["laplace", "student-t:4"])
def test_a_run_learns_and_goes_on_to_the_bit(posterior, tmp_path):
    recipe = SMALL.replace(posterior=posterior)
    whole = train(recipe, tmp_path / "whole")
    net = model_file.load(whole)
    assert {str(family) for family in families_of(net)} == {posterior}
    assert RunFolder(whole).metrics()[-1].validation.accuracy > 0.5, "ten classes: chance is 0.1"
    assert sum(p.s for p in ssvi.nn.posteriors(net).values() if p.s < p.d) == round(
        0.3 * sum(p.d for p in ssvi.nn.posteriors(net).values() if p.s < p.d)
    )

    start(recipe, tmp_path / "cut").train(lambda n: os.kill(os.getpid(), signal.SIGTERM) if n.step == 17 else None)
    again, _ = resume(tmp_path / "cut")
    again.train()
    finish(again)
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_dense_vi_takes_a_family_and_natural_gradients_have_no_such_setting(tmp_path):
    recipe = recipe_files.load("digits", "vi").replace(epochs=1, width=8, batch_size=256, posterior="student-t:4")
    assert families_of(model_file.load(train(recipe, tmp_path / "vi"))) == {StudentT(4)}
    with pytest.raises(RecipeError, match="posterior"):
        recipe_files.load("digits", "ssvi").replace(posterior="laplace")


def test_a_recipe_with_an_unknown_family_is_refused():
    for posterior in ("cauchy", "student-t:2"):
        with pytest.raises(RecipeError, match=f"posterior='{posterior}' must be gaussian, laplace, student-t, or"):
            SMALL.replace(posterior=posterior)


def plain() -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 8, 3), nn.Flatten(), nn.Linear(8, 5))


def header(path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()["ssvi"])


@pytest.mark.parametrize("family", [Laplace(), Laplace(moment_matched=True), StudentT(2.7)], ids=str)
def test_a_users_own_network_comes_back_with_its_family(family, tmp_path):
    bnn, path = ssvi.to_bnn(plain(), 0.4, posterior=family).eval(), tmp_path / "m.safetensors"
    ssvi.save(bnn, path)
    again = ssvi.load(path, net=plain())
    assert families_of(again) == {family}
    assert all(torch.equal(a, b) for a, b in zip(bnn.state_dict().values(), again.state_dict().values(), strict=True))
    x = torch.randn(2, 4, 3, 3)
    draws = [ssvi.predict(net, x, samples=2, generator=torch.Generator().manual_seed(0)) for net in (bnn, again)]
    assert torch.equal(*draws)
    assert ssvi.kl(bnn).item() == ssvi.kl(again).item()
    assert header(path)["format"] == OF_A_FAMILY, "an earlier version would take it for a Gaussian"


def test_a_gaussian_file_says_nothing_of_families(tmp_path):
    ssvi.save(ssvi.to_bnn(plain(), 0.4), tmp_path / "m.safetensors")
    found = header(tmp_path / "m.safetensors")
    assert found["format"] == FORMAT
    assert all("family" not in posterior for posterior in found["posteriors"].values())


def test_a_file_with_a_family_that_is_none_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    ssvi.save(ssvi.to_bnn(plain(), 0.4, posterior="laplace"), path)
    found = header(path)
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    del found["sha256"]
    found["posteriors"]["0"]["family"] = "student-t:1"
    save_file(tensors, path, {"ssvi": json.dumps(found)})
    with pytest.raises(ModelFileError, match="family='student-t:1'"):
        ssvi.load(path, net=plain())
    found["posteriors"]["0"]["family"] = "gaussian"
    save_file(tensors, path, {"ssvi": json.dumps(found)})
    with pytest.raises(ModelFileError, match="posteriors of several kinds"):
        ssvi.load(path, net=plain())


@dataclass(frozen=True)
class Uniform(ssvi.families.Family):
    """z uniform on [-sqrt(3), sqrt(3)]: a family of a user's own."""

    is_local = False
    negentropy = 0.1765

    def noise(self, count, *, dtype, device, generator=None):
        return (torch.rand(count, generator=generator, dtype=dtype, device=device) * 2 - 1) * 3**0.5

    def excess(self, r):
        return (3**0.5 - r.double()).clamp_min(0).square() / (2 * 3**0.5)

    def __str__(self):
        return "uniform"


def test_a_family_of_ones_own_trains_and_cannot_be_saved(tmp_path):
    bnn = ssvi.to_bnn(plain(), 0.4, posterior=Uniform())
    ssvi.ELBO(bnn, train_size=2)(bnn(torch.randn(2, 4, 3, 3)).square().mean()).backward()
    with pytest.raises(ValueError, match=r"cannot be saved: a model file holds the families of ssvi.families alone"):
        ssvi.save(bnn, tmp_path / "m.safetensors")


def test_the_record_of_the_criteria_is_for_gaussian_posteriors(tmp_path):
    with pytest.raises(RecipeError, match=r"record_iou .* posterior='laplace' .* leave one of the two out"):
        train(SMALL.replace(posterior="laplace", record_iou=True, epochs=1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
