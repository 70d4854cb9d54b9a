"""The best trial of a method, by the validation images, and its settings as a table of a recipe file."""

import shutil
import tomllib

import pytest
from small_runs import finished

import ssvi
from ssvi import comparison, methods
from ssvi.comparison import PlannedRun, Trial
from ssvi.comparison.tuning import BUDGET, tuned_methods
from ssvi.evaluation import FinishedRun
from ssvi.training.recipe import from_mapping


def trial(method: str, nll: float = 0.5, sparsity: float = 0.0, **settings: str | float) -> Trial:
    return Trial(method, 0, settings, sparsity, nll, accuracy=0.9, examples=10)


def test_every_method_has_the_same_budget():
    followers = [name for name in methods.NAMES if methods.about(name).tuned_like]
    assert [*tuned_methods(), *followers] == [name for name in methods.NAMES if name not in followers] + followers
    trials = [methods.get(name).TRIALS for name in tuned_methods()]
    assert {len(of_method) for of_method in trials} == {BUDGET}
    assert all(len({str(changes) for changes in of_method}) == BUDGET for of_method in trials), "no trial twice"


@pytest.mark.parametrize("method", tuned_methods())
def test_every_trial_is_a_recipe(method, tmp_path):
    runs = comparison.plan_trials([from_mapping({"method": method})], tmp_path)
    assert [run.name for run in runs] == [f"{method}-trial{i}" for i in range(BUDGET)]
    assert len({run.recipe for run in runs}) == BUDGET


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
    assert result.settings == methods.get("ssvi").TRIALS[2]
    assert not (folder / "evaluation.json").exists()


def test_the_tables_are_for_a_recipe_file():
    winners = {"vd": trial("vd", optimizer="adam", lr=1e-3), "deterministic": trial("deterministic", lr=0.5)}
    read = tomllib.loads(comparison.recipe_tables(winners))
    assert read == {"vd": {"optimizer": "adam", "lr": 1e-3}, "deterministic": {"lr": 0.5}, "ensemble": {"lr": 0.5}}
