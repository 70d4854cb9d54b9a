"""Settings that a grid varies: what is read, what each method trains, and what is refused."""

import pytest
from grids import planned

from ssvi import comparison
from ssvi.comparison import Variation, parse_variation, rows
from ssvi.training.recipe import RecipeError


def varied(out, *methods: str, vary: tuple[str, ...], **others: object):
    return planned(out, *methods, variations=[parse_variation(text) for text in vary], **others)


def test_values_have_the_type_of_their_setting():
    assert parse_variation("rate=0.1, 1") == Variation("rate", (0.1, 1))
    assert parse_variation("every=50,100,50") == Variation("every", (50, 100))
    assert parse_variation("removal=abs_mu,snr") == Variation("removal", ("abs_mu", "snr"))
    assert parse_variation("per-epoch=true,false") == Variation("per_epoch", (True, False))
    assert parse_variation("prior_sigma=fan-in,0.1") == Variation("prior_sigma", ("fan-in", 0.1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate", "--vary rate: give a setting and its values, such as rate=A,B"),
        ("rate=", "--vary rate=: give a setting"),
        ("ratte=0.1", "unknown key 'ratte' in --vary ratte=0.1: did you mean 'rate'?"),
        ("density=0.1,0.2", "give --densities in its place"),
        ("every=often", "every='often' must be of type int"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(RecipeError, match=message.replace("?", r"\?")):
        parse_variation(text)


def test_every_combination_is_trained_by_the_methods_that_have_the_setting(tmp_path):
    runs = varied(tmp_path, "ssvi", "vi", vary=("rate=0.1,0.3", "batch_size=16,32"), seeds=(0, 1))
    names = [run.name for run in runs if run.recipe.seed == 0]
    assert names == [
        "ssvi-0.05-batch_size=16-rate=0.1-seed0", "ssvi-0.05-batch_size=16-rate=0.3-seed0",
        "ssvi-0.05-batch_size=32-rate=0.1-seed0", "ssvi-0.05-batch_size=32-rate=0.3-seed0",
        "vi-batch_size=16-seed0", "vi-batch_size=32-seed0",
    ]  # fmt: skip
    assert len(runs) == 2 * len(names)
    assert all(run.recipe.values[field] == value for run in runs for field, value in run.varied)


def test_the_order_of_the_flags_does_not_change_the_folders(tmp_path):
    one = varied(tmp_path, "ssvi", vary=("rate=0.1,0.3", "every=10,20"))
    other = varied(tmp_path, "ssvi", vary=("every=10,20", "rate=0.1,0.3"))
    assert {run.name for run in one} == {run.name for run in other}


def test_a_value_that_the_setting_cannot_have_is_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(RecipeError, match="rate=2"):
        varied(tmp_path, "ssvi", vary=("rate=0.1,2",))


def test_a_setting_that_no_method_has_and_one_that_stands_twice_are_refused():
    rate = parse_variation("rate=0.1,0.3")
    with pytest.raises(RecipeError, match="none of vi, deterministic uses rate"):
        comparison.check_variations([rate], ["vi", "deterministic"])
    with pytest.raises(RecipeError, match="--vary rate stands twice"):
        comparison.check_variations([rate, rate], ["ssvi"])


def test_rows_are_of_runs_that_differ_in_the_seed_alone(tmp_path):
    runs = varied(tmp_path, "ssvi", vary=("rate=0.1,0.3",), seeds=(0, 1))
    failures = {run.name: "not trained" for run in runs}
    found = rows(comparison.evaluate_runs(runs, failures))
    assert [row.label for row in found] == ["SSVI, density 0.05, rate 0.1", "SSVI, density 0.05, rate 0.3"]
    assert [row.failed for row in found] == [2, 2]
    assert [row.summary().varied for row in found] == [{"rate": 0.1}, {"rate": 0.3}]
