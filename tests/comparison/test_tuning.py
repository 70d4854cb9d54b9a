"""The best trial of a method, by the validation images, and its settings as a table of a recipe file."""

import shutil
import sys
import tomllib

import pytest
from small_runs import finished

import ssvi
from ssvi import comparison
from ssvi.comparison import PlannedRun, Trial, Tuning, optuna_storage
from ssvi.comparison.optuna_storage import TuningError
from ssvi.comparison.tuning import StudyResult
from ssvi.evaluation import FinishedRun
from ssvi.training.recipe_files import parse


def trial(method: str, nll: float = 0.5, sparsity: float = 0.0, **settings: str | float) -> Trial:
    return Trial(method, 3, settings, sparsity, nll, accuracy=0.9, examples=10)


def test_the_best_is_the_lowest_nll():
    trials = [trial("ssvi", 0.3, 0.9), trial("ssvi", 0.1, 0.1), trial("ssvi", 0.2, 0.99)]
    assert comparison.best(trials) is trials[1], "a density that is set needs no floor"


@pytest.mark.parametrize(("method", "floor"), [("vd", 0.9), ("sbp", 0.5), ("mbnn", 0.5)])
def test_where_sparsity_is_an_outcome_a_trial_must_be_sparse(method, floor):
    trials = [trial(method, 0.1, floor - 0.01), trial(method, 0.3, floor), trial(method, 0.2, floor + 0.01)]
    assert comparison.best(trials) is trials[2]
    dense = [trial(method, 0.1, 0.0), trial(method, 0.9, 0.2)]
    assert comparison.best(dense) is dense[1], "if none is, the sparsest"


def test_a_trial_is_evaluated_on_validation_images(tmp_path):
    folder = tmp_path / "ssvi-trial2"
    shutil.copytree(finished("ssvi"), folder)
    run = FinishedRun(folder)
    planned = PlannedRun(run.recipe.replace(samples=3), folder, 0.05)
    result = comparison.evaluate_trial(planned, 2, {"lr": 0.4}, None)
    expected = ssvi.evaluate(run.net, run.batches(run.validation), 3)
    assert result.examples == len(run.validation) != len(run.test)
    assert (result.nll, result.accuracy) == (expected.nll, expected.accuracy)
    assert (result.trial, result.settings) == (2, {"lr": 0.4})
    assert result.seconds == sum(line.seconds for line in planned.folder.metrics()) > 0
    assert not (folder / "evaluation.json").exists()


def test_the_tables_are_for_a_recipe_file_and_say_where_they_come_from():
    best = {"vd": trial("vd", optimizer="adam", lr=1e-3), "deterministic": trial("deterministic", 0.25, lr=0.5)}
    studies = {method: StudyResult(f"digits-{method}", 16, 0, 9.0, 7, 30) for method in best}
    tables = comparison.recipe_tables(Tuning("here", 16, studies, [], best, {}, {}, []))
    read = tomllib.loads(tables)
    assert read == {"vd": {"optimizer": "adam", "lr": 1e-3}, "deterministic": {"lr": 0.5}, "ensemble": {"lr": 0.5}}
    origin = "# study digits-deterministic: trial 3 of 16, seed 7, 30 epochs, validation NLL 0.2500\n"
    assert f"{origin}[deterministic]" in tables
    assert f"{origin}[ensemble]" in tables
    assert parse(tables, "tables", "ensemble").lr == 0.5


def test_trials_of_another_length_are_said_in_the_tables():
    assert comparison.length(30, 30) == comparison.length(5, None) == ""
    said = comparison.length(5, 30)
    assert said.startswith("trials of 5 epochs, where the recipe has 30: ")
    best = {"vd": trial("vd", lr=1e-3)}
    studies = {"vd": StudyResult("digits-vd", 16, 0, 9.0, 7, 5)}
    tables = comparison.recipe_tables(Tuning("here", 16, studies, [], best, {}, {}, [], said))
    assert tables.startswith(f"# {said}\n\n# study digits-vd")
    assert tomllib.loads(tables) == {"vd": {"lr": 1e-3}}


@pytest.mark.parametrize("address", ["study.db", "nosuch://host/name", "sqlite:////nosuch/folder/study.db"])
def test_a_storage_that_cannot_be_opened_is_named(address):
    with pytest.raises(
        TuningError, match=f"--storage={address} cannot be opened .*: give an address such as sqlite:///"
    ):
        optuna_storage.open_storage(address)


@pytest.mark.parametrize("missing", [True, False])
def test_without_optuna_or_with_an_old_one_there_is_one_line(missing, monkeypatch):
    if missing:
        monkeypatch.setitem(sys.modules, "optuna", None)
    else:
        monkeypatch.setattr("optuna.__version__", "4.9.0")
    with pytest.raises(TuningError, match=r"`ssvi tune` needs Optuna 5 or later, .*: pip install 'ssvi\[tune\]'$"):
        optuna_storage.load_optuna()
