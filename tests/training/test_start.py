"""A run folder appears when data, network, method and settings have been made and one batch has passed; not before."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import train

from ssvi import methods
from ssvi.errors import UserError
from ssvi.training import network_size, recipe_files, run_folder, start
from ssvi.training.first_step import try_first_step
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunFolder
from ssvi.training.tasks import task_of

SMALL = Recipe().replace(width=2, epochs=1)

NETWORKS = """
import functools
from torch import nn

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.layer = nn.Linear(64, classes)

    def forward(self, x):
        return self.layer(x.flatten(1))

class Empty(Net):
    def forward(self, x):
        super().forward(x)

class Several(Net):
    def forward(self, x):
        return super().forward(x), x

class Broken(Net):
    def forward(self, x):
        return {}["layer"]

class Constant(Net):
    def forward(self, x):
        return super().forward(x).detach()

class WrongInput(Net):
    def forward(self, x):
        return self.layer(x)

def few(classes):
    return Net(5)

def many(classes):
    return Net(50)

def nothing(classes):
    return None

def failing(classes):
    return 1 / 0

def without_arguments():
    return Net(10)

def other_name(num_classes):
    return Net(num_classes)

def flat(classes):
    return nn.Flatten()

part = functools.partial(Net)
instance = Net(10)
"""

REFUSED = {
    "few": r"returned a tensor of shape \(64, 5\) for 64 examples, but a tensor of shape \(examples, 10\) is needed",
    "many": r"returned a tensor of shape \(64, 50\)",
    "Empty": "returned NoneType",
    "Several": "returned tuple",
    "Broken": r"a batch of shape \(64, 1, 8, 8\) did not pass \(KeyError: 'layer'\)",
    "Constant": "did not pass .*does not require grad",
    "WrongInput": "did not pass",
    "nothing": "returned NoneType and not a network",
    "failing": r"failed with classes=10 \(ZeroDivisionError",
    "without_arguments": "cannot be called with classes=10",
    "other_name": "cannot be called with classes=10",
    "instance": "is a network already",
    "missing": "has no attribute 'missing'",
}


@pytest.fixture
def own(tmp_path, monkeypatch) -> str:
    """The name of a module with networks of one's own."""
    name = f"networks_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(NETWORKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def assert_refused(recipe: Recipe, message: str, folder: Path) -> None:
    """An error for the user, and neither the folder nor its parents were made."""
    with pytest.raises(UserError, match=message):
        start.start(recipe, folder / "new" / "deep" / "run")
    assert not (folder / "new").exists()


@pytest.mark.parametrize("name", REFUSED)
def test_a_network_that_cannot_be_trained_is_named_and_leaves_nothing(name, own, tmp_path):
    recipe = SMALL.replace(model=f"{own}:{name}", keep_dense=())
    assert_refused(recipe, f"model='{own}:{name}'.*{REFUSED[name]}", tmp_path)


@pytest.mark.parametrize("name", ["Net", "part"])
def test_a_class_and_a_partial_are_networks_of_ones_own(name, own, tmp_path):
    train(SMALL.replace(model=f"{own}:{name}", keep_dense=()), tmp_path / "run")
    assert 0 < json.loads((tmp_path / "run" / "result.json").read_text())["accuracy"] <= 1


@pytest.mark.parametrize("name", ["./nets.py:Net", "nets.py:Net", ":Net", "nets:", ".nets:Net", "no_such_module:Net"])
def test_a_name_that_is_no_module_and_function_is_one_line(name, tmp_path):
    assert_refused(SMALL.replace(model=name), f"^model='{name}'", tmp_path)


def test_a_module_that_fails_when_it_is_imported_is_one_line(own, tmp_path):
    for content in ("def (:\n", "raise SystemExit(3)\n", "1 / 0\n"):
        (tmp_path / "spoiled.py").write_text(content)
        assert_refused(SMALL.replace(model="spoiled:Net"), "model='spoiled:Net' cannot be imported", tmp_path)


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("vd", {"keep_dense": ("conv7",)}, "keep_dense='conv7' matches no Bayesian layer"),
        ("snr-prune", {"keep_dense": ("conv7",)}, "keep_dense='conv7' matches no Bayesian layer"),
        ("snr-finetune", {"keep_dense": ("conv7",)}, "keep_dense='conv7' matches no Bayesian layer"),
        ("aeb", {"keep_dense": ("conv7",), "members": 1, "burn_in": 0.0}, "keep_dense='conv7' matches no layer"),
        ("snr-prune", {"density": 1e-9}, "density=1e-09"),
        ("snr-finetune", {"density": 1e-9}, "density=1e-09"),
        ("ssvi", {"mc_steps": 50}, "mc_steps=50"),
        ("rigl", {"addition": "snr"}, "addition='snr' needs mc_steps"),
        ("ssvi", {"pretrained": "nowhere"}, "pretrained="),
        ("ssvi", {"device": "nodevice"}, "device='nodevice' cannot be used"),
        ("ssvi", {"size": "2"}, "size=2: lenet"),
        ("ssvi", {"model": "table"}, "model='table' is for tables"),
    ],
)  # fmt: skip
def test_what_would_stop_a_run_at_its_end_is_found_at_its_start(method, changes, message, tmp_path):
    assert_refused(SMALL.replace(method=method, **changes), message, tmp_path)


@pytest.mark.parametrize("method", ["sbp", "group-vd", "mbnn"])
def test_a_network_without_hidden_channels_is_refused_by_methods_that_remove_them(method, own, tmp_path):
    settings = {"burn_in": 0.0, "members": 1} if method == "mbnn" else {}
    assert_refused(SMALL.replace(method=method, model=f"{own}:Net", **settings), "net has no", tmp_path)


@pytest.mark.parametrize("method", methods.NAMES)
def test_the_trial_of_one_batch_leaves_no_trace_in_the_run(method, tmp_path):
    """The run after the trial is, bit by bit, the run that is begun without one."""
    recipe = recipe_files.load("digits", method).replace(width=4, epochs=10)
    run = start.start(recipe, tmp_path / "run")
    random = torch.get_rng_state()
    plain = start._begin(run.folder, recipe, task_of(recipe))
    assert torch.equal(random, torch.get_rng_state())
    x, y = next(iter(run.batches))
    for each in (run, plain):
        torch.manual_seed(3)
        each.net.train()
        each.step(x, y)
    mine, other = run.net.state_dict(), plain.net.state_dict()
    assert all(torch.equal(mine[name], other[name]) for name in other)
    assert not (tmp_path / "run" / "states").exists()


def test_a_trial_does_change_the_run_that_it_is_made_with(tmp_path):
    """Otherwise the test above would say nothing."""
    run = start.start(SMALL, tmp_path / "run")
    before = {name: value.clone() for name, value in run.net.state_dict().items()}
    try_first_step(run)
    assert any(not torch.equal(before[name], value) for name, value in run.net.state_dict().items())


def test_a_folder_that_cannot_be_filled_is_taken_away(tmp_path, monkeypatch):
    def full(*args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(run_folder, "sealed_json", full)
    assert_refused(SMALL, "cannot be written: No space left", tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("kept")
    with pytest.raises(UserError, match="cannot be written"):
        start.start(SMALL, tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_check_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    threads, random = torch.get_num_threads(), torch.get_rng_state()
    start.check(SMALL.replace(threads=2))
    assert torch.get_num_threads() == threads
    assert torch.equal(random, torch.get_rng_state())
    assert list(tmp_path.iterdir()) == []


def npz(folder: Path, x: np.ndarray, y: object, **more: np.ndarray) -> Recipe:
    np.savez(folder / "own.npz", x=x, y=np.asarray(y), **more)
    return SMALL.replace(data=str(folder / "own.npz"))


IMAGES = np.arange(60 * 64).reshape(60, 8, 8).astype(np.uint8)


@pytest.mark.parametrize(
    ("classes", "count", "message"),
    [
        ([0, 10**9], 60, "a label of 1000000000"), ([0, 99], 60, "100 classes but 60 training examples"),
        ([7, 7], 60, "examples of 1 class"), ([0, 1], 4, "at least 10 are needed"), ([-1, 0], 60, "labels from -1"),
    ],
)  # fmt: skip
def test_classes_that_cannot_be_learnt_are_refused(classes, count, message, tmp_path):
    assert_refused(npz(tmp_path, IMAGES[:count], (classes * 30)[:count]), message, tmp_path)


def test_test_images_of_a_class_without_training_images_are_refused(tmp_path):
    recipe = npz(tmp_path, IMAGES, [0, 1] * 30, x_test=IMAGES, y_test=np.arange(60) % 3)
    assert_refused(recipe, "test examples of '2', but no training examples of them", tmp_path)
    np.savez(tmp_path / "own.npz", x_test=IMAGES, y_test=np.arange(60) % 3)
    assert_refused(recipe, "has no training examples", tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"validation": 0.9999}, "validation=0.9999 .*leave 0: at least 10 are needed"),
        ({"examples": 3}, "examples=3 .*leave 3: at least 10 are needed"),
        ({"validation": 0.6}, "validation=0.6 .*leave no training example of '1'"),
    ],
)
def test_settings_that_leave_no_examples_are_named(changes, message, tmp_path):
    recipe = npz(tmp_path, IMAGES, [1, *[0] * 59]).replace(**changes)
    assert_refused(recipe, message, tmp_path)


def test_a_network_that_does_not_fit_into_the_memory_is_not_made(tmp_path, monkeypatch):
    recipe = SMALL.replace(model="mlp", width=1000)
    count = 64 * 1000 + 1000 + 1000**2 + 1000 + 1000 * 10 + 10
    assert network_size.parameters(task_of(recipe)) == count
    monkeypatch.setattr(network_size, "free_bytes", lambda: 8 * count - 1)
    assert_refused(recipe, f"width=1000: model='mlp' would have {count:,} parameters", tmp_path)
    monkeypatch.setattr(network_size, "free_bytes", lambda: 8 * count)
    network_size.check_network_size(recipe, task_of(recipe))


def test_a_width_beyond_all_memory_is_one_line(tmp_path):
    assert_refused(SMALL.replace(width=1_000_000), "width=1000000: model='lenet' would have", tmp_path)


def test_without_test_images_the_result_says_so(tmp_path):
    train(npz(tmp_path, IMAGES, [0, 1] * 30), tmp_path / "run")
    assert RunFolder(tmp_path / "run").result == {
        "examples": 0, "reason": "there are no test examples, so nothing was evaluated",
    }  # fmt: skip
