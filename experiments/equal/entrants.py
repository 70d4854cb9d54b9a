"""Who takes part: a method at a width, with what it changes in the recipe. The first entrant sets the time for all."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssvi.methods import about
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe, RecipeError

DEFAULT = "ssvi:32,ssvi-lrt:32,rigl:32,static:32,vi:16,vi:32,vi:64,deterministic:16,deterministic:32,deterministic:64"
SET_HERE = ("epochs", "seed", "threads")
"""Settings that an entrant cannot change: the comparison sets them."""


@dataclass(frozen=True)
class Entrant:
    """A method at a width; `tag` tells it from another entrant of the same method and width."""

    method: str
    width: int
    tag: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Settings of the recipe that it has for itself."""

    @property
    def name(self) -> str:
        """How its run folders begin: METHOD-wWIDTH, and the tag."""
        return "-".join(filter(None, (self.method, f"w{self.width}", self.tag)))

    @property
    def aims_at_density(self) -> bool:
        """Whether `density` sets the sparsity of its method."""
        return about(self.method).aims_at_density

    def recipe(self, base: str, **changes: Any) -> Recipe:
        """The recipe `base` for this entrant, with further changes."""
        return recipe_files.load(base, self.method).replace(width=self.width, **self.overrides, **changes)


def parse_entrants(text: str) -> tuple[Entrant, ...]:
    """The entrants of a list "METHOD:WIDTH,..." or of a TOML file, each name once."""
    entrants = _of_file(Path(text)) if text.endswith(".toml") else [_of_word(word) for word in text.split(",")]
    names = [entrant.name for entrant in entrants]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise RecipeError(f"{', '.join(twice)} is there twice: give one of them a tag, in a TOML file")
    return tuple(entrants)


def _of_word(word: str) -> Entrant:
    method, _, width = word.strip().partition(":")
    if not method or not width.isdecimal():
        raise RecipeError(f"entrant {word!r} must be METHOD:WIDTH, such as ssvi:32, or a file whose name ends in .toml")
    return Entrant(method, int(width))


def _of_file(file: Path) -> Sequence[Entrant]:
    """A table [[entrant]] for each; keys that are not method, width or tag are settings of the recipe."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("entrant", [])
    except (OSError, ValueError) as error:
        raise RecipeError(f"{file} cannot be read as TOML: {error}") from error
    if not isinstance(tables, list) or not tables:
        raise RecipeError(f"{file} has no entrants: write a table [[entrant]] with method and width for each")
    return [_of_table(table, file) for table in tables]


def _of_table(table: Mapping[str, Any], file: Path) -> Entrant:
    if not isinstance(table.get("method"), str) or type(table.get("width")) is not int:
        raise RecipeError(f"{file}: {dict(table)} needs a method and a width, such as method = 'ssvi' and width = 32")
    if taken := [key for key in SET_HERE if key in table]:
        raise RecipeError(f"{file}: {', '.join(taken)} cannot be set for one entrant: the comparison sets it for all")
    overrides = {key: value for key, value in table.items() if key not in ("method", "width", "tag")}
    return Entrant(table["method"], table["width"], str(table.get("tag", "")), overrides)
