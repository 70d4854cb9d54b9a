"""`ssvi tune`: the same number of trials for every method, judged on validation images."""

import json
import shutil
import subprocess
import sys
import tomllib

import pytest
from small_runs import finished

import ssvi
from ssvi import comparison as compare
from ssvi.cli.tune import tables
from ssvi.comparison.grid import Planned
from ssvi.comparison.trials import BUDGET, LIKE, TRIALS
from ssvi.evaluation import FinishedRun
from ssvi.methods.catalogue import METHODS
from ssvi.training import recipe as config


def test_every_method_has_the_same_budget():
    assert TRIALS.keys() | LIKE.keys() == METHODS.keys()
    assert {len(trials) for trials in TRIALS.values()} == {BUDGET}
    assert all(len({str(changes) for changes in trials}) == BUDGET for trials in TRIALS.values()), "no trial twice"


@pytest.mark.parametrize("method", TRIALS)
def test_every_trial_is_a_recipe(method, tmp_path):
    runs = compare.plan_trials([config.Recipe(method=method)], tmp_path)
    assert [run.name for run in runs] == [f"{method}-trial{i}" for i in range(BUDGET)]
    assert len({run.recipe for run in runs}) == BUDGET


def trial(method: str, nll: float, sparsity: float) -> dict:
    return {"method": method, "nll": nll, "sparsity": sparsity}


def test_the_best_is_the_lowest_nll():
    trials = [trial("ssvi", 0.3, 0.9), trial("ssvi", 0.1, 0.1), trial("ssvi", 0.2, 0.99)]
    assert compare.best(trials) is trials[1], "a density that is set needs no floor"


@pytest.mark.parametrize(("method", "floor"), [("vd", 0.9), ("sbp", 0.5), ("mbnn", 0.5)])
def test_where_sparsity_is_an_outcome_a_trial_must_be_sparse(method, floor):
    trials = [trial(method, 0.1, floor - 0.01), trial(method, 0.3, floor), trial(method, 0.2, floor + 0.01)]
    assert compare.best(trials) is trials[2]
    dense = [trial(method, 0.1, 0.0), trial(method, 0.9, 0.2)]
    assert compare.best(dense) is dense[1], "if none is, the sparsest"


def test_a_trial_is_judged_on_validation_images(tmp_path):
    folder = tmp_path / "ssvi-trial2"
    shutil.copytree(finished("ssvi"), folder)
    run = FinishedRun(folder)
    found = compare.judge(Planned(run.recipe, folder, 0.05), 3, None)
    expected = ssvi.evaluate(run.net, run.batches(run.validation), 3)
    assert found["examples"] == len(run.validation) != len(run.test)
    assert (found["nll"], found["accuracy"]) == (expected.nll, expected.accuracy)
    assert found["settings"] == TRIALS["ssvi"][2]
    assert not (folder / "evaluation.json").exists()


def test_the_tables_are_for_a_recipe_file():
    winners = {"vd": {"settings": {"optimizer": "adam", "lr": 1e-3}}, "deterministic": {"settings": {"lr": 0.5}}}
    read = tomllib.loads(tables(winners))
    assert read == {"vd": {"optimizer": "adam", "lr": 1e-3}, "deterministic": {"lr": 0.5}, "ensemble": {"lr": 0.5}}


def test_on_the_command_line(tmp_path):
    command = [sys.executable, "-m", "ssvi", "tune", "digits", "--methods", "static,ensemble", "--epochs", "1"]
    command += ["--width", "4", "--out", str(tmp_path), "--jobs", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["trials"]) == found["budget"] == BUDGET
    lowest = min(found["trials"], key=lambda made: made["nll"])
    assert found["best"]["static"] == lowest
