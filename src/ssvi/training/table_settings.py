"""Which settings of a recipe are for tables, which for images, and the request for a table that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

from ssvi.data.tables import SUFFIXES, TableRequest
from ssvi.methods.settings import RecipeError

OF_TABLES = ("target", "task", "likelihood", "test", "test_share", "categories", "ignore")
OF_IMAGES = ("size", "fit", "channels", "augment")


def is_table(data: str, target: str) -> bool:
    """Whether the data are a table, by the name of the file; a `.npz` file is one if a column of it is to be predicted."""
    suffix = Path(data).suffix.lower()
    return suffix in SUFFIXES or (suffix == ".npz" and bool(target))


def check_kind(values: Mapping[str, Any], common: Mapping[str, Field[Any]]) -> None:
    """Refuse settings of images for a table, and those of tables for images."""
    table = is_table(values["data"], values["target"])
    wrong, kind, data = (OF_IMAGES, "images", "a table") if table else (OF_TABLES, "tables", "images")
    for name in wrong:
        if values[name] != common[name].default:
            hint = "leave it out" if table else "leave it out, or give a table and its --target"
            raise RecipeError(f"{name}={values[name]!r} is for {kind}, but data={values['data']!r} is {data}: {hint}")


def table_request(values: Mapping[str, Any]) -> TableRequest:
    """What a recipe asks of its table."""
    names = ("target", "task", "categories", "ignore", "test", "test_share", "validation", "seed")
    return TableRequest(**{name: values[name] for name in names})
