"""Every setting of every method has a rule, which holds for files, for Python and for flags alike."""

import dataclasses
import math

import pytest

from ssvi import methods
from ssvi.methods.settings import LARGEST, Settings, settings_fields
from ssvi.training import recipe_files
from ssvi.training.recipe import COMMON, Recipe, RecipeError, fields_of, from_mapping
from ssvi.training.setting_values import toml

EVERY = [(method, name) for method in methods.NAMES for name in fields_of(method) if name not in COMMON] + [
    ("ssvi", name) for name in COMMON
]
NEGATIVE = {"threshold": "log alpha, or a ratio of any sign"}
"""Numbers that may be negative, and why."""


def made_of(method: str) -> Recipe:
    return Recipe().replace(method=method)


def values_beyond(name: str, default: object) -> list[object]:
    """Values that make no sense for a setting with this default."""
    if isinstance(default, bool):
        return [1, "yes", None]
    if isinstance(default, int):
        return [-1, 10**30, 1.5, math.nan, True, "3", None]
    if isinstance(default, float):
        signs = [] if name in NEGATIVE else [-1.0]
        return [*signs, math.nan, math.inf, -math.inf, 1e300, 10**400, True, "fast", None]
    if isinstance(default, tuple):
        return ["first", 3, ("a", 1), ("",), ("a\nb",)]
    return ["a\nb", "\x00", "\ud800", "x" * 5000, None, True, ("a",)]


@pytest.mark.parametrize(("method", "name"), EVERY)
def test_a_value_that_makes_no_sense_is_refused_by_the_name_of_its_setting(method, name):
    field, recipe = fields_of(method)[name], made_of(method)
    for value in values_beyond(name, field.default):
        with pytest.raises(RecipeError, match=f"^{name}="):
            recipe.replace(**{name: value})
        with pytest.raises(RecipeError, match=f"^{name}="):
            dataclasses.replace(recipe if name in COMMON else recipe.settings, **{name: value})


@pytest.mark.parametrize(("method", "name"), EVERY)
def test_a_file_is_read_by_the_same_rules(method, name):
    for value in (math.nan, math.inf, -(10**31)):
        if name == "method" or (isinstance(fields_of(method)[name].default, str) and name != "prior_sigma"):
            continue  # a number is read as its text, and refused by the rule of the text
        with pytest.raises(RecipeError, match=f"{name}="):
            recipe_files.parse(f'method = "{method}"\n{name} = {toml(value)}\n', "file")


@pytest.mark.parametrize("method", methods.NAMES)
def test_every_default_obeys_its_rule_and_survives_a_file(method):
    recipe = made_of(method)
    assert all("rule" in field.metadata for field in settings_fields(type(recipe.settings)).values())
    assert recipe_files.parse(recipe.to_toml(), "file") == recipe


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("ssvi", {"removal": "foo"}), ("ssvi", {"addition": "foo"}), ("ssvi", {"allocation": "foo"}),
        ("ssvi", {"support": "foo"}), ("vi", {"sigma_map": "relu"}), ("vi", {"optimizer": "rmsprop"}),
        ("vi", {"momentum": 1.5}), ("vi", {"prior_sigma": math.inf}), ("vi", {"prior_sigma": 1e-300}),
        ("mbnn", {"prior_sigma": math.inf}), ("snr-prune", {"prune_scope": "foo"}), ("ssvi", {"density": 95.0}),
        ("ssvi", {"device": "meta"}), ("ssvi", {"device": "cuda:x"}), ("ssvi", {"threads": 100_000}),
        ("ssvi", {"model": "vgg"}), ("ssvi", {"data": ""}), ("ssvi", {"width": 10**7}), ("ensemble", {"members": 10**6}),
        ("vi", {"lr": 2 * LARGEST}), ("ssvi", {"samples": 10**8}), ("ssvi", {"size": "0x5"}),
    ],
)  # fmt: skip
def test_words_and_ranges_are_looked_at_when_the_recipe_is_made(method, changes):
    with pytest.raises(RecipeError, match=f"^{next(iter(changes))}="):
        made_of(method).replace(**changes)


def test_a_long_value_is_not_printed_whole():
    with pytest.raises(RecipeError) as raised:
        from_mapping({"lr": 10**400})
    assert len(str(raised.value)) < 100


def test_a_setting_of_ones_own_method_has_the_rule_of_its_type():
    from ssvi.methods.settings import setting

    @dataclasses.dataclass(frozen=True)
    class Own(Settings):
        strength: float = setting(0.5, "of what is my own")

    with pytest.raises(RecipeError, match="strength=nan must be a finite number"):
        Own(math.nan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"), ("# nothing\n", "is empty"),
        ("[vd]\nlr = -1\n", r"table \[vd\]: lr=-1.0 must be"),
        ("[vd]\nthreshold = nan\n", r"table \[vd\]: threshold=nan must be"),
        ('[ssvi-lrt]\nsigma_map = "relu"\n', r"table \[ssvi-lrt\]: sigma_map='relu' must be one of"),
        ("lam = -1\n", "lam=-1.0 must be"), ("lamb = 1\n", "unknown key 'lamb'"),
        ("keep_dense = [1, true]\n", "keep_dense=.* must be a list of names"),
        ('keep_dense = "first"\n', "keep_dense='first' must be a list of names"),
        (f"epochs = {'9' * 5000}\n", "is not TOML"), ("lr = 2020-01-01\n", "lr=.* must be of type float"),
        ("[[vd]]\nlr = 1\n", "unknown key 'vd'"), ("[vd.more]\nlr = 1\n", r"unknown key 'more' in the table \[vd\]"),
    ],
)  # fmt: skip
def test_a_mistake_anywhere_in_a_file_is_an_error_whatever_the_method(text, message):
    with pytest.raises(RecipeError, match=message):
        recipe_files.parse(text, "file", "ssvi")
