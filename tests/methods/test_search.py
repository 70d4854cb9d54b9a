"""What tuning searches for each method: ranges that hold the authors' settings and those of our recipes."""

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from ssvi import methods
from ssvi.comparison.tuning import tuned_methods
from ssvi.methods.search import Choice, Range, Search
from ssvi.training.recipe import from_mapping

RECIPES = {p.name: tomllib.loads(p.read_text()) for p in (files("ssvi") / "recipes").iterdir() if p.suffix == ".toml"}


class Fixed:
    """Chooses the values that it is given, as an enqueued trial does."""

    def __init__(self, values):
        self.values = values

    def suggest_float(self, name, low, high, *, log):
        assert low <= self.values[name] <= high
        assert low > 0 or not log
        return self.values[name]

    def suggest_categorical(self, name, choices):
        assert self.values[name] in choices
        return self.values[name]


def test_every_method_is_tuned_or_takes_the_settings_of_another():
    followers = [name for name in methods.NAMES if methods.about(name).tuned_like]
    assert {*tuned_methods(), *followers} == set(methods.NAMES)
    assert not set(followers) & set(tuned_methods())


@pytest.mark.parametrize("name", tuned_methods())
def test_the_first_settings_are_in_the_space_and_make_a_recipe(name):
    search = methods.get(name).SEARCH
    assert search.first, "the authors' settings, or the literature's"
    for settings in search.first:
        assert search.contains(settings)
        recipe = from_mapping({"method": name} | settings)
        assert {key: recipe.values[key] for key in settings} == settings
        chosen = search.suggest(Fixed(search.parameters(settings)))
        assert chosen == {key: settings[key] for key in search.space}


@pytest.mark.parametrize("name", tuned_methods())
def test_the_tables_of_our_recipes_are_in_the_space(name):
    space, seen = methods.get(name).SEARCH.space, 0
    for recipe in RECIPES.values():
        table = recipe.get(name, {})
        outside = {key: value for key, value in table.items() if key in space and not space[key].contains(value)}
        assert outside == {}
        seen += bool(table)
    assert seen, "digits has a table for every method"


@pytest.mark.parametrize("name", tuned_methods())
def test_a_space_has_at_most_four_numbers_and_a_choice(name):
    space = methods.get(name).SEARCH.space.values()
    choices = [v for v in space if isinstance(v, Choice) and len(v.values) > 1]
    assert len(choices) <= 1
    assert 2 <= len([v for v in space if isinstance(v, Range)]) <= 4


def test_what_was_unfair_is_in_the_spaces():
    vd, aeb, mbnn = (methods.get(name).SEARCH.space for name in ("vd", "aeb", "mbnn"))
    assert vd["beta_max"].contains(1.0), "the bound itself"
    assert aeb["v0"].contains(0.005)
    assert aeb["v1"].contains(1e-5)
    assert mbnn["temperature"].contains(2e-5)


AUTHORS = {  # what the papers or their code train with, see docs/baselines.md
    "vd": [{"lr": 1e-3, "beta_max": 1.0, "threshold": 3.0, "warm_start": 0.0}, {"lr": 1e-5, "warm_start": 0.5}],
    "sbp": [{"lr": 1e-3, "beta_max": 1.0}, {"lr": 1e-5, "sigma_lr": 1e-4, "beta_max": 1.0, "warm_start": 0.5}],
    "group-vd": [{"lr": 1e-3, "sigma_lr": 1e-3, "beta_max": 1.0}, {"threshold": -3.0}],
    "aeb": [{"v0": 0.005, "v1": 1e-5, "lr": 1e-4, "temperature": 1e-3, "warm_start": 0.5}],
    "mbnn": [{"lr": 0.5, "temperature": 2e-5, "lam": 0.05, "every": 10, "prior_sigma": 0.1}],
    "rigl": [{"lr": 0.1, "weight_decay": 5e-4}],
    "ssvi-lrt": [{"lr": 0.01, "beta_max": 0.01, "prior_sigma": 0.005}],
    "snr-prune": [{"beta_max": 1.0, "prune_scope": "global"}],
}


@pytest.mark.parametrize("name", AUTHORS)
def test_the_authors_settings_are_tried_first(name):
    first = methods.get(name).SEARCH.first
    for settings in AUTHORS[name]:
        assert any(settings.items() <= tried.items() for tried in first), f"{settings} is not among {first}"


def test_aebs_prior_pulls_as_hard_per_example_where_there_are_fewer():
    authors, _, scaled = methods.get("aeb").SEARCH.first
    assert (scaled["v0"] * 1000, scaled["v1"] * 1000) == pytest.approx((authors["v0"] * 50_000, authors["v1"] * 50_000))


@pytest.mark.parametrize(
    ("values", "value", "edge", "widened"),
    [
        (Range(0.01, 1.0), 0.1, False, Range(0.01, 1.0)),
        (Range(0.01, 1.0), 0.9, True, Range(0.01, 3.0)),
        (Range(0.01, 1.0), 0.7, False, Range(0.01, 1.0)),
        (Range(0.03, 3.0), 0.03, True, Range(0.01, 3.0)),
        (Range(0.01, 1.0, most=1.0), 1.0, True, Range(0.01, 1.0, most=1.0)),
        (Range(0.01, 0.5, most=1.0), 0.5, True, Range(0.01, 1.0, most=1.0)),
        (Range(-1.0, 5.0, log=False), 4.8, True, Range(-1.0, 8.0, log=False)),
        (Range(-1.0, 5.0, log=False, least=-2.0), -1.0, True, Range(-2.0, 5.0, log=False, least=-2.0)),
        (Range(1e-5, 0.1, or_else=0.0), 0.0, False, Range(1e-5, 0.1, or_else=0.0)),
        (Range(0.01, 1.0, or_else="fan-in"), "fan-in", False, Range(0.01, 1.0, or_else="fan-in")),
        (Choice(("layer", "global")), "layer", False, Choice(("layer", "global"))),
    ],
)
def test_a_range_is_widened_on_the_side_of_a_value_at_its_edge(values, value, edge, widened):
    assert values.contains(value)
    assert values.at_edge(value) == edge
    assert values.widened(value) == widened


def test_a_number_has_three_digits_and_stays_in_its_range():
    assert Range(0.01, 1.0).suggest("lr", Fixed({"lr": 0.123456})) == 0.123
    assert Range(0.12341, 1.0).suggest("lr", Fixed({"lr": 0.12342})) == 0.12341
    beside = Range(1e-5, 0.1, or_else=0.0)
    assert beside.suggest("decay", Fixed({"decay is 0.0": True})) == 0.0
    assert beside.suggest("decay", Fixed({"decay is 0.0": False, "decay": 0.01})) == 0.01


def test_what_the_user_fixes_is_not_searched():
    search = Search({"lr": Range(0.01, 1.0), "every": Choice((1, 10))}, ({"lr": 0.1, "every": 1, "rate": 0.3},))
    assert search.without(["lr", "rate"]) == Search({"every": Choice((1, 10))}, ({"every": 1},))


def test_a_choice_that_a_recipe_cannot_have_is_left_out():
    search = Search({"warm_start": Choice((0.0, 0.5)), "lr": Range(0.01, 1.0)}, ({"warm_start": 0.5, "lr": 0.1},))
    short = search.feasible(lambda name, value: value != 0.5)
    assert short.space == {"warm_start": Choice((0.0,)), "lr": Range(0.01, 1.0)}
    assert not short.contains(short.first[0]), "so it is not tried"
    assert search.feasible(lambda name, value: False) == search, "something must be left"


def words(name, values):
    """A dimension as the page on tuning has it."""
    if isinstance(values, Choice):
        return f"{name} {' or '.join(map(str, values.values))}"
    return f"{name} {values}" + ("" if values.or_else is None else f" or {values.or_else}")


@pytest.mark.parametrize("name", tuned_methods())
def test_the_page_on_tuning_has_the_space_of_every_method(name):
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()
    space = methods.get(name).SEARCH.space
    assert f"| `{name}` | {', '.join(words(*item) for item in space.items())} |" in page
