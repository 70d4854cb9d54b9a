"""A model file or a run folder of a stranger does not choose which code runs here."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import ssvi
from ssvi.cli import cli
from ssvi.evaluation import FinishedRun
from ssvi.hub import from_pretrained
from ssvi.nn.models import mlp
from ssvi.training import model_file
from ssvi.training.model_header import ModelAbout
from ssvi.training.pretrained import start_from
from ssvi.training.recipe import RecipeError, from_mapping
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start
from ssvi.training.trusted_code import UntrustedCodeError, config_folder, trust, trusted

STRANGER = Path(__file__).parent / "earlier_runs" / "ssvi"
CODE = """
from pathlib import Path
from ssvi.nn.models import mlp
Path(__file__).with_suffix(".ran").touch()
def make(*, classes, channels, size, width=4):
    return mlp(classes=classes, channels=channels, size=size, width=width)
"""


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A module that leaves a file where it is imported; its name is that of no other test."""
    name = f"code_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SSVI_CONFIG_DIR", str(tmp_path / "settings"))
    yield name
    sys.modules.pop(name, None)


def ran(name, folder):
    return (folder / f"{name}.ran").exists()


def model_that_names(model, folder):
    about = ModelAbout(["a", "b"], 1, 6, [0.5], [0.25])
    bnn = ssvi.to_bnn(mlp(classes=2, size=6, width=4), 0.5)
    file = folder / "model.safetensors"
    model_file.save(bnn, file, recipe={"model": model, "width": 4}, about=about)
    return file


@pytest.mark.parametrize("opened", [ssvi.load, from_pretrained])
def test_the_code_that_a_file_names_is_not_imported(opened, code, tmp_path):
    file = model_that_names(f"{code}:make", tmp_path)
    with pytest.raises(
        UntrustedCodeError, match=rf"names code that is not part of ssvi, {code}:make, .*ssvi trust {code}"
    ):
        opened(file)
    assert not ran(code, tmp_path)
    trust(f"{code}:make")
    assert isinstance(opened(file)[1], ssvi.nn.layers.LinearMap)
    assert ran(code, tmp_path)


@pytest.mark.parametrize("model", ["os:system", "antigravity:x", "x:y; rm -rf ~", "a\nb:c", ":", "builtins:exec"])
def test_names_that_would_do_harm(model, code, tmp_path):
    file = model_that_names(model, tmp_path)
    with pytest.raises(UntrustedCodeError) as refused:
        ssvi.load(file)
    assert "\n" not in str(refused.value)


def test_with_the_network_no_code_is_needed(code, tmp_path):
    file = model_that_names(f"{code}:make", tmp_path)
    ssvi.load(file, net=mlp(classes=2, size=6, width=4))
    assert not ran(code, tmp_path)


def test_weights_to_start_from_run_no_code(code, tmp_path):
    file = model_that_names(f"{code}:make", tmp_path)
    with pytest.raises(RecipeError, match=f"names code that is not part of ssvi, {code}:make"):
        start_from(mlp(classes=2, size=6, width=4), str(file))
    assert not ran(code, tmp_path)


@pytest.mark.parametrize(
    "recipe", ['method = "{}"', 'model = "{}:make"', 'method = "vd"\n[vd]\nmodel = "{}:make"', '[ssvi]\nmethod = "{}"']
)
@pytest.mark.parametrize("opened", [FinishedRun, resume, ssvi.load_run], ids=["evaluate", "resume", "load_run"])
def test_the_recipe_of_a_strangers_folder_names_no_code(recipe, opened, code, tmp_path):
    folder = shutil.copytree(STRANGER, tmp_path / "run")
    (folder / "recipe.toml").write_text(recipe.format(code))
    with pytest.raises(UntrustedCodeError, match=f"{folder}.recipe.toml names code that is not part of ssvi, {code}"):
        opened(folder)
    assert not ran(code, tmp_path)


def test_a_machine_file_of_the_folder_is_no_consent(code, tmp_path):
    """The folder is the stranger's, with everything in it: what the user trusts is kept elsewhere."""
    folder = shutil.copytree(STRANGER, tmp_path / "run")
    with safe_open(folder / "model.safetensors", "pt") as file:
        header = json.loads(file.metadata()["ssvi"])
    header["recipe"]["model"] = f"{code}:make"
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors", {"ssvi": json.dumps(header)})
    with pytest.raises(UntrustedCodeError, match=f"model.safetensors names code .*{code}:make"):
        ssvi.load(folder)
    assert config_folder() not in folder.parents


def test_who_trains_with_code_of_her_own_opens_the_run(code, tmp_path):
    small = {"epochs": 1, "examples": 64, "width": 4, "batchnorm_batches": 0}
    run = start(from_mapping({"data": "digits", "model": f"{code}:make"} | small), tmp_path / "run")
    assert trusted() == {f"{code}:make"}
    assert RunFolder(run.folder.path).recipe == run.recipe


def test_a_home_that_cannot_be_written_is_said_and_training_goes_on(code, tmp_path, monkeypatch):
    (tmp_path / "a file").touch()
    monkeypatch.setenv("SSVI_CONFIG_DIR", str(tmp_path / "a file"))
    small = {"epochs": 1, "examples": 64, "width": 4}
    with pytest.warns(UserWarning, match="cannot be written: .* Set SSVI_CONFIG_DIR to a folder that can be"):
        start(from_mapping({"data": "digits", "model": f"{code}:make"} | small), tmp_path / "run")
    assert (tmp_path / "run" / "recipe.toml").is_file()


def test_the_command(code, tmp_path):
    said = CliRunner().invoke(cli, ["trust", f"{code}:make", "my.method"])
    assert said.output.splitlines()[1:] == [f"{code}:make", "my.method"]
    assert CliRunner().invoke(cli, ["trust"]).output == said.output
    assert not ran(code, tmp_path)
    wrong = CliRunner().invoke(cli, ["trust", "a name"])
    assert "'a name' is no name of code" in f"{wrong.output}{wrong.exception}"
    assert trusted() == {f"{code}:make", "my.method"}
