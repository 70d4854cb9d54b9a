"""The best trial of a method, by the validation images, and its settings as a table of a recipe file."""

import shutil
import tomllib

import pytest
from small_runs import finished
from ssvi.comparison.trials import TRIALS

import ssvi
from ssvi import comparison
from ssvi.comparison import PlannedRun, Trial
from ssvi.evaluation import FinishedRun


def trial(method: str, nll: float = 0.5, sparsity: float = 0.0, **settings: str | float) -> Trial:
    return Trial(method, 0, settings, sparsity, nll, accuracy=0.9, examples=10)


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
    result = comparison.evaluate_trial(PlannedRun(run.recipe, folder, 0.05), 3, None)
    expected = ssvi.evaluate(run.net, run.batches(run.validation), 3)
    assert result.examples == len(run.validation) != len(run.test)
    assert (result.nll, result.accuracy) == (expected.nll, expected.accuracy)
    assert result.settings == TRIALS["ssvi"][2]
    assert not (folder / "evaluation.json").exists()


def test_the_tables_are_for_a_recipe_file():
    winners = {"vd": trial("vd", optimizer="adam", lr=1e-3), "deterministic": trial("deterministic", lr=0.5)}
    read = tomllib.loads(comparison.recipe_tables(winners))
    assert read == {"vd": {"optimizer": "adam", "lr": 1e-3}, "deterministic": {"lr": 0.5}, "ensemble": {"lr": 0.5}}
