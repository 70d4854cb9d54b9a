"""What tuning tries: the same number of different settings for every method, each of which is a recipe."""

import pytest
from ssvi.comparison.trials import BUDGET, LIKE, TRIALS
from ssvi.methods.catalogue import METHODS

from ssvi import comparison
from ssvi.training import recipe as config


def test_every_method_has_the_same_budget():
    assert TRIALS.keys() | LIKE.keys() == METHODS.keys()
    assert {len(trials) for trials in TRIALS.values()} == {BUDGET}
    assert all(len({str(changes) for changes in trials}) == BUDGET for trials in TRIALS.values()), "no trial twice"


@pytest.mark.parametrize("method", TRIALS)
def test_every_trial_is_a_recipe(method, tmp_path):
    runs = comparison.plan_trials([config.Recipe(method=method)], tmp_path)
    assert [run.name for run in runs] == [f"{method}-trial{i}" for i in range(BUDGET)]
    assert len({run.recipe for run in runs}) == BUDGET
