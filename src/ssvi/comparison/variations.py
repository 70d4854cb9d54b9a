"""Settings that a comparison varies: `--vary rate=0.1,0.3` trains every method that has the setting once for each value.

Several variations make a grid of all their combinations.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ssvi.training.recipe import Recipe, RecipeError, all_fields, fields_of
from ssvi.training.setting_values import coerced, unknown_key

ELSEWHERE = {"method": "--methods", "density": "--densities", "seed": "--seeds", "samples": "--samples"}
"""Settings that the grid has flags of their own for."""

Varied = tuple[tuple[str, Any], ...]
"""The settings in which a run differs from others of its method, each with its value, in the order of their names."""


@dataclass(frozen=True)
class Variation:
    """A setting and the values that it takes."""

    field: str
    values: tuple[Any, ...]


def parse_variation(text: str) -> Variation:
    """FIELD=A,B,...: the values as a recipe file writes them, words without quotes."""
    field, equals, values = text.partition("=")
    field = field.strip().replace("-", "_")
    if field in ELSEWHERE:
        raise RecipeError(f"--vary {text}: give {ELSEWHERE[field]} in its place")
    known = all_fields()
    if field not in known:
        raise unknown_key(field, known, f" in --vary {text}")
    words = dict.fromkeys(word.strip() for word in values.split(",") if word.strip())
    if not equals or not words:
        raise RecipeError(f"--vary {text}: give a setting and its values, such as {field}=A,B")
    return Variation(field, tuple(coerced(field, _value(word), known[field]) for word in words))


def _value(word: str) -> Any:
    """A number or true and false as TOML has them; anything else is a word."""
    try:
        return tomllib.loads(f"value = {word}")["value"]
    except tomllib.TOMLDecodeError:
        return word


def check_variations(variations: Sequence[Variation], methods: Sequence[str]) -> None:
    """An error where a setting is varied twice, or none of the methods has it."""
    fields = [variation.field for variation in variations]
    for field in fields:
        if fields.count(field) > 1:
            raise RecipeError(f"--vary {field} stands twice: give all its values at once")
        if not any(field in fields_of(method) for method in methods):
            raise RecipeError(f"none of {', '.join(methods)} uses {field}: leave --vary {field} out")


def variants(recipe: Recipe, variations: Sequence[Variation]) -> Iterator[tuple[Recipe, Varied]]:
    """The recipe for every combination of the values; a setting that its method does not have is not varied."""
    known = fields_of(recipe.method)
    own = sorted((each for each in variations if each.field in known), key=lambda each: each.field)
    for values in product(*(each.values for each in own)):
        varied = tuple(zip((each.field for each in own), values, strict=True))
        yield recipe.replace(**dict(varied)), varied


def folder_part(varied: Varied) -> str:
    """What the name of a run folder says of them: -FIELD=VALUE for each."""
    return "".join(f"-{field}={value}" for field, value in varied).replace("/", "_")


def in_words(varied: Varied) -> str:
    """For the label of a row: ", FIELD VALUE" for each."""
    return "".join(f", {field} {value}" for field, value in varied)
