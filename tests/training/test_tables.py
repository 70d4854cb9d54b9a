"""Tables are trained on by every method, in the same loop, run folder and model file as images."""

import math

import polars as pl
import pytest
import torch
from small_tables import finished_table, houses, recipe

import ssvi
from ssvi import methods
from ssvi.data import Batches, DataError
from ssvi.likelihoods import Categorical, Gaussian, StudentT
from ssvi.likelihoods.noise import WithNoise
from ssvi.training.likelihood_names import LIKELIHOODS, likelihood_of, mean_nll
from ssvi.training.model_file import read
from ssvi.training.recipe import RecipeError
from ssvi.training.run import finish
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.start import resume, start
from ssvi.training.tasks import task_of

FEW = {name: {"members": 1} for name in ("aeb", "mbnn")} | {
    name: {"members": 2} for name in ("ensemble", "ssvi-ensemble")
}
"""What a method needs so that two epochs are enough."""


@pytest.mark.parametrize("target", ["price", "sold"])
@pytest.mark.parametrize("method", methods.NAMES)
def test_every_method_trains_on_a_table(method, target):
    folder = finished_table(method, target, **FEW.get(method, {}))
    result = RunFolder(folder).result
    expected = {"rmse", "crps", "coverage_90"} if target == "price" else {"accuracy", "ece", "brier"}
    assert expected <= result.keys()
    assert all(math.isfinite(value) for value in result.values())
    lines = RunFolder(folder).metrics()
    assert all(line.validation.nll is not None and line.flops > 0 for line in lines)

    net = ssvi.load(folder)
    x = torch.randn(3, read(folder / "model.safetensors")[0].table.features)
    assert torch.isfinite(net(x)).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_every_likelihood_trains(likelihood, tmp_path):
    run = start(recipe(likelihood=likelihood, epochs=1), tmp_path / "run")
    run.train()
    assert math.isfinite(finish(run).nll)
    assert isinstance(ssvi.load(tmp_path / "run"), WithNoise) == (not likelihood.endswith("predicted"))


def test_likelihoods_by_name():
    assert likelihood_of("auto", 0) == likelihood_of("gaussian", 0) == Gaussian()
    assert likelihood_of("student-t-predicted", 0) == StudentT("predicted")
    assert likelihood_of("auto", 3) == Categorical(3)
    with pytest.raises(RecipeError, match="likelihood='gaussian' is for numbers, but the target is a class"):
        likelihood_of("gaussian", 3)


def test_the_loss_of_classes_is_that_of_earlier_versions():
    assert mean_nll(Categorical(4)) is torch.nn.functional.cross_entropy
    output, y = torch.randn(9, 2), torch.randn(9)
    assert torch.equal(mean_nll(Gaussian("predicted"))(output, y), Gaussian("predicted").nll(output, y))


def test_a_run_that_is_cut_goes_on_bit_for_bit(tmp_path):
    whole = start(recipe(epochs=3), tmp_path / "whole")
    whole.train()
    cut = start(recipe(epochs=3), tmp_path / "cut")
    cut.train(on_step=lambda numbers: cut.stop("test") if numbers.step == 4 else None)
    again, damaged = resume(tmp_path / "cut")
    assert (again.progress.step, damaged) == (4, [])
    again.train()
    for name, tensor in whole.net.state_dict().items():
        assert torch.equal(tensor, again.net.state_dict()[name]), name
    assert vars(finish(again)).items() >= {"rmse": finish(whole).rmse}.items()


def test_a_run_does_not_go_on_with_another_table(tmp_path):
    table = tmp_path / "houses.csv"
    houses().write_csv(table)
    run = start(recipe(data=str(table)), tmp_path / "run")
    run.train(on_step=lambda numbers: run.stop("test"))
    houses(seed=1).write_csv(table)
    with pytest.raises(RunError, match=r"houses.csv has changed since .*run was begun"):
        resume(tmp_path / "run")


def test_the_validation_error_is_in_the_units_of_the_target():
    """A network that has hardly learnt has an RMSE near the spread of the prices, and not near 1."""
    task = task_of(recipe())
    net = task.network()
    with torch.no_grad():
        net.net[-1].weight.zero_()
        net.net[-1].bias.zero_()
    data, target = task.data, task.data.learnt.target
    evaluation = task.evaluate(net, Batches(data.test, 50, normalise=data.normalise, shuffle=False), 1)
    y = data.test.y.double() * target.std
    assert evaluation.rmse == pytest.approx(y.square().mean().sqrt().item(), rel=1e-5)
    assert evaluation.nll == pytest.approx(
        0.5 * math.log(2 * math.pi) + math.log(1.0001 * target.std) + 0.5 * (evaluation.rmse / target.std / 1.0001) ** 2
    )


def test_the_header_has_the_columns_and_no_pickle():
    folder = finished_table()
    header, _ = read(folder / "model.safetensors")
    assert header.format == 5
    assert header.about is None
    assert header.table == task_of(recipe()).data.learnt
    assert b"sklearn" not in (folder / "model.safetensors").read_bytes()


def test_a_network_of_ones_own(tmp_path):
    run = start(recipe(model="ssvi.nn.row_models:shallow_table", width=7), tmp_path / "run")
    assert next(task_of(run.recipe).network().net.parameters()).shape == (7, 6)


WRONG = {
    "augment": ({"augment": "crop"}, "augment='crop' is for images"),
    "size": ({"size": "8"}, "size='8' is for images"),
    "model": ({"model": "lenet"}, "model='lenet' is for images, and the data is a table"),
    "unknown model": ({"model": "tabel"}, "model='tabel' must be one of"),
    "likelihood": ({"likelihood": "gamma"}, "likelihood='gamma' must be one of auto, gaussian"),
    "task": ({"task": "ranking"}, "task='ranking' must be one of auto, number, classes"),
    "examples": ({"examples": 1000}, "examples=1000 are more than the 86"),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG)
def test_settings_that_a_table_refuses(changes, message, tmp_path):
    with pytest.raises(RecipeError) as raised:
        start(recipe(**changes), tmp_path / "run")
    assert message in str(raised.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["target", "test", "likelihood", "categories"])
def test_settings_that_images_refuse(name):
    value = {"target": "y", "test": "t.csv", "likelihood": "gaussian", "categories": ["a"]}[name]
    with pytest.raises(RecipeError, match=f"{name}=.* is for tables, but data='digits' is images"):
        ssvi.training.recipe_files.load("digits").replace(**{name: value})


def test_nothing_is_left_behind_by_a_bad_table(tmp_path):
    table = tmp_path / "t.csv"
    pl.DataFrame({"size": [1.0, math.inf, 3.0], "price": [1.0, 2.0, 4.0]}).write_csv(table)
    with pytest.raises(DataError, match="inf in row 2"):
        start(recipe(data=str(table), ignore=()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["deterministic", "ssvi"])
def test_clip_bounds_the_gradients(method, tmp_path):
    """By natural gradients only biases and the noise are bounded: the curvature needs the gradients of theta as they are."""
    run = start(recipe(method, clip=1e-3), tmp_path / "run")
    natural, rest = [], []

    def keep(*_):
        for name, parameter in run.net.named_parameters():
            if parameter.grad is not None:
                (natural if name.endswith(".mu") else rest).append(parameter.grad.flatten().clone())

    run.training.optimizer.register_step_pre_hook(keep)
    run.step(run.data.train.x[:32], run.data.train.y[:32])
    assert torch.cat(rest).norm().item() == pytest.approx(1e-3, rel=1e-3)
    assert bool(natural) == (method == "ssvi")
    assert not natural or torch.cat(natural).norm() > 0.01
