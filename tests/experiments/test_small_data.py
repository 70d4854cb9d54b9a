"""The experiment on little data: its command, its two loops, its formulas, and its splits."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import ssvi
from ssvi.data import DataError, default_folder

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


def run(*arguments: str):
    """The command with these arguments; torch has as many threads afterwards as before."""
    threads = torch.get_num_threads()
    command = runpy.run_path(str(EXPERIMENTS / "small_data.py"))["main"]
    try:
        return CliRunner().invoke(command, arguments)
    finally:
        torch.set_num_threads(threads)


SMALL = ("--tasks", "digits-150", "--seeds", "0,1", "--densities", "0.5", "--validation")
LEARNS = ("--set", "h0=0.5", "--set", "epochs=40")


def test_the_posterior_learns_and_the_table_has_a_row_for_each_method(tmp_path):
    page = tmp_path / "page.md"
    result = run(*SMALL, *LEARNS, "--no-plain", "--write", str(page), "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [r["seed"] for r in runs] == [0, 1]
    assert all(r["metrics"]["accuracy"] > 0.8 and r["metrics"]["NLL"] < 0.8 for r in runs), runs
    head, _, *rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    assert head == "| method | accuracy | NLL | ECE | OOD AUROC | NLL - plain's |"
    assert [row.split(" | ")[0] for row in rows] == ["| SSVI, density 0.5"]


def test_plain_training_is_tuned_and_compared_seed_by_seed():
    result = run(*SMALL, "--set", "epochs=4", "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [r["method"] for r in runs] == ["plain training", "SSVI, density 0.5"] * 2
    assert runs[0]["metrics"]["accuracy"] > 0.7
    assert runs[0]["chosen"]["lr"] in (0.03, 0.1), "four epochs are too short for a rate of 0.01"


def test_sparse_plain_training_is_tuned_and_keeps_its_density():
    from small.digits import network
    from small.task import Examples
    from small.training import Batches, PlainSettings, train_plain

    result = run(*SMALL, "--set", "epochs=4", "--no-plain", "--rigl", "--seeds", "0", "--densities", "1,0.5", "--json")
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert [r["method"] for r in runs] == ["RigL, density 0.5", "SSVI, density 1", "SSVI, density 0.5"]
    assert runs[0]["metrics"]["accuracy"] > 0.7
    assert runs[0]["chosen"]["lr"] in (0.03, 0.1), "four epochs are too short for a rate of 0.01"

    torch.manual_seed(0)
    batches = Batches(Examples(torch.randn(64, 64), torch.randint(0, 8, (64,))), 8, epochs=3)
    settings = PlainSettings("SGD", 0.1, 0.01)
    sparse = train_plain(network(), torch.nn.functional.cross_entropy, batches, settings, density=0.1)
    live = sum(layer.posterior.index.numel() for _, layer in ssvi.layers(sparse))
    assert live == round(0.1 * sum(p.numel() for p in network().parameters() if p.dim() > 1))


def test_the_difference_to_plain_training_is_paired():
    from small.runs import RunResult
    from small.sine import sine_task
    from small.tables import table

    def result(method: str, seed: int, nll: float) -> RunResult:
        return RunResult("sine", method, seed, {"NLL": nll}, None)

    plain = [result("plain training", 0, 1.0), result("plain training", 1, 3.0)]
    ours = [result("SSVI, density 1", 1, 2.5), result("SSVI, density 1", 0, 0.5)]
    made = table(sine_task(), [*plain, *ours])
    assert made.rows[0] == ["plain training", "2.000 ± 1.414", "-"]
    assert made.rows[1] == ["SSVI, density 1", "1.500 ± 1.414", "-0.500 ± 0.000"]
    diverged = table(sine_task(), [*plain, result("SSVI, density 1", 0, math.nan), ours[0]])
    assert diverged.rows[1][1] == "1 of 2 diverged"


def test_set_needs_validation_and_a_name_that_exists():
    assert "add --validation" in run("--tasks", "sine", "--set", "epochs=1").output
    assert "no argument of to_bnn" in run("--validation", "--set", "prior_sigm=1").output
    assert "'cosine' is unknown" in run("--tasks", "cosine").output
    assert "every density must be in (0, 1]" in run("--tasks", "sine", "--densities", "2").output


def test_mixture_against_torch_distributions():
    from small.regression import gaussian_nll, mixture_nll, predictive_std

    torch.manual_seed(0)
    outputs, y = torch.randn(7, 5, 2, dtype=torch.float64), torch.randn(5, dtype=torch.float64)
    components = torch.distributions.Normal(outputs[..., 0].T, outputs[..., 1].T.exp())
    weights = torch.distributions.Categorical(torch.ones(5, 7, dtype=torch.float64))
    mixture = torch.distributions.MixtureSameFamily(weights, components)
    assert mixture_nll(outputs, y) == pytest.approx(-mixture.log_prob(y).mean().item())
    assert torch.allclose(predictive_std(outputs), mixture.stddev)
    assert gaussian_nll(outputs[0], y).item() == pytest.approx(mixture_nll(outputs[:1], y))


def test_validation_evaluates_no_test_image():
    from small.digits import digits_task

    task = digits_task(800)
    evaluated = [task.draw(0, validation).evaluate.keywords for validation in (True, False)]
    train = task.draw(0, False).train
    assert len(train) == 800
    assert torch.equal(train.x, task.draw(0, True).train.x)
    validation, test = ({tuple(row.tolist()) for key in ("test", "ood") for row in each[key].x} for each in evaluated)
    trained = {tuple(row.tolist()) for row in train.x}
    assert not validation & test
    assert not trained & (validation | test)
    assert len(test) == 359


def write_uci(folder: Path, rows: int = 40) -> np.ndarray:
    """A data set in the published format: y = 3 x0 + 10, a useless and a constant column."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    x = np.stack([random.normal(size=rows), random.normal(size=rows), np.ones(rows)], 1)
    data = np.column_stack([x, 3 * x[:, 0] + 10])
    np.savetxt(folder / "data.txt", data)
    order = random.permutation(rows)
    indices = {"features": range(3), "target": [3], "train_0": order[4:], "test_0": order[:4]}
    for name, values in indices.items():
        np.savetxt(folder / f"index_{name}.txt", np.array(values), fmt="%d")
    return data[order]


@pytest.mark.parametrize("place", ["bostonHousing", "uci/bostonHousing", "UCI_Datasets/bostonHousing/data"])
def test_uci_is_standardised_by_the_training_part_and_evaluated_in_its_own_units(tmp_path, place):
    from small.uci import uci_task

    data = write_uci(tmp_path / place)
    problem = uci_task("boston", tmp_path).draw(0, False)
    mean, std = data[4:, 3].mean(), data[4:, 3].std()
    assert torch.allclose(problem.train.x[:, 2], torch.zeros(36)), "a constant column is 0, not nan"
    assert problem.train.y.double().std(correction=0).item() == pytest.approx(1.0, abs=1e-6)
    metrics = problem.evaluate(lambda x: torch.zeros(1, len(x), 2))  # predicts N(mean, std^2) of the training part
    residual = (data[:4, 3] - mean) / std
    assert metrics["RMSE"] == pytest.approx(std * np.sqrt(np.mean(residual**2)), rel=1e-5)
    assert metrics["NLL"] == pytest.approx(np.log(std * np.sqrt(2 * np.pi)) + 0.5 * np.mean(residual**2), rel=1e-5)


def test_uci_validation_holds_out_a_fifth_of_the_training_part(tmp_path):
    from small.uci import uci_task

    write_uci(tmp_path / "energy")
    problem = uci_task("energy", tmp_path).draw(0, True)
    assert (len(problem.train), len(problem.evaluate.keywords["test"])) == (29, 7)


def test_missing_uci_data_tell_where_to_get_them(tmp_path):
    result = run("--tasks", "boston", "--splits", "1", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert "Get it from https://" in result.output


def test_the_published_uci_data_have_their_splits():
    from small.uci import FOLDERS, uci_task

    try:
        problems = {name: uci_task(name, default_folder()).draw(19, False) for name in FOLDERS}
    except DataError as error:
        pytest.skip(f"no UCI data here; set SSVI_DATA_DIR to a folder that has them ({error})")
    assert {name: len(problem.train) for name, problem in problems.items()} == {
        "boston": 455, "concrete": 927, "energy": 691,
    }  # fmt: skip


def test_batches_use_every_example_once_an_epoch_and_none_is_small():
    from small.task import Examples
    from small.training import Batches

    batches = Batches(Examples(torch.arange(150.0)[:, None], torch.arange(150)), size=32, epochs=2)
    drawn = [y for _, y in batches]
    assert len(drawn) == len(batches) == 8
    assert min(len(y) for y in drawn) >= 32
    assert torch.equal(torch.cat(drawn[:4]).sort().values, torch.arange(150))
