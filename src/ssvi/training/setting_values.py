"""The name and the value of a setting: from a flag or a recipe file to its type, and back to TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from difflib import get_close_matches
from typing import Any

from ssvi.methods.settings import RecipeError, takes_words_and_numbers, word_or_number, wrong_type


def coerced(key: str, value: Any, about: Field[Any]) -> Any:
    """The value in the type of its field: 1 and "1" are accepted as a float, "1" is not accepted as an int."""
    kind = type(about.default)
    if kind is tuple and isinstance(value, list):
        return tuple(value)
    if takes_words_and_numbers(about) and type(value) in (str, int, float):
        return word_or_number(value)
    if kind is float and type(value) in (str, int):
        value = word_or_number(value)  # as text from a flag that is a word or a number for another method
    if kind is str and type(value) in (int, float):
        return str(value)
    if type(value) is not kind:
        raise wrong_type(about, value)
    return value


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def unknown_key(key: str, known: Mapping[str, Any], where: str = "") -> RecipeError:
    """The error for a name that is not a setting, with the nearest one that is."""
    near = get_close_matches(key, known, 1)
    return RecipeError(f"unknown key {key!r}{where}" + (f": did you mean {near[0]!r}?" if near else ""))
