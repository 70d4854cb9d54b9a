"""Recipe files: TOML that holds only what differs from the defaults.

Settings at the top of a file are for every method that has them; a table with the name of a method, [vd], is for that
method alone.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from ssvi import methods
from ssvi.methods.settings import check_value
from ssvi.training.recipe import COMMON, Recipe, RecipeError, fields_of, from_mapping
from ssvi.training.setting_values import coerced, unknown_key
from ssvi.training.trusted_code import code_in


def names() -> dict[str, str]:
    """The recipes that come with the package, each with the first comment of its file."""
    recipes = sorted(p for p in (files("ssvi") / "recipes").iterdir() if p.name.endswith(".toml"))  # type: ignore[type-var]
    return {p.name.removesuffix(".toml"): p.read_text().splitlines()[0].lstrip("# ") for p in recipes}


def load(name: str | Path, method: str | None = None) -> Recipe:
    """The recipe of that name, or in that file; for a method that is not the recipe's own, with its table there."""
    if str(name) in names():
        return parse((files("ssvi") / "recipes" / f"{name}.toml").read_text(), str(name), method)
    path = Path(name)
    if not os.path.isfile(path):  # false too for a name that is too long for a file
        near = get_close_matches(str(name), names(), 1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"take one of {', '.join(names())}, or the path of a .toml file"
        )
        raise RecipeError(f"recipe {str(name)!r} does not exist: {hint}")
    return read(path, method)


def read(path: Path, method: str | None = None) -> Recipe:
    """The recipe in a file."""
    return parse(_text(path), str(path), method)


def code_in_text(text: str, where: str) -> list[str]:
    """The user's own networks and methods that a recipe names, in its tables too. Nothing is imported."""
    values = _values(text, where)
    tables = [value for value in values.values() if isinstance(value, dict)]
    return [name for part in (values, *tables) for name in code_in(part)]


def parse(text: str, where: str, method: str | None = None) -> Recipe:
    """A recipe from TOML, for its own method or for another one."""
    values = _values(text, where)
    if not values:
        raise RecipeError(f'{where} is empty: a recipe has at least one setting, such as data = "digits"')
    tables = {key: values.pop(key) for key, value in list(values.items()) if isinstance(value, dict)}
    chosen = method or _method_of(values)
    for name, table in tables.items():
        if name not in (*methods.NAMES, chosen):
            raise RecipeError(f"{where}: unknown table [{name}]; a table is for a method: {', '.join(methods.NAMES)}")
        _check_table(name, table)
    return from_mapping(values | {"method": chosen} | tables.get(chosen, {}))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path} cannot be read as text: {error}") from error


def _values(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: a number may have too many digits
        raise RecipeError(f"{where} is not TOML: {error}") from error


def _method_of(values: Mapping[str, Any]) -> str:
    """The method that a recipe names, by its present name, or the default."""
    if "method" in values:
        return methods.present_name(str(values["method"]), values)
    return str(COMMON["method"].default)


def _check_table(name: str, table: Mapping[str, Any]) -> None:
    """A table is for a method, and holds settings of that method alone, with values that it can have."""
    known = fields_of(name)
    for key, value in table.items():
        if key not in known:
            raise unknown_key(key, known, f" in the table [{name}]")
        try:
            check_value(known[key], coerced(key, value, known[key]))
        except RecipeError as error:
            raise RecipeError(f"table [{name}]: {error}") from error
