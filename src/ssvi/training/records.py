"""Typed records and JSON: the one place where frozen dataclasses become plain values and come back."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import msgspec

from ssvi.errors import UserError

T = TypeVar("T")


class RecordError(UserError, ValueError):
    """Plain values that are not such a record: names the record, the field and what is wrong with it."""


def to_plain(record: Any) -> Any:
    """Dictionaries, lists, strings and numbers; the fields of a dataclass are the keys of a dictionary."""
    return msgspec.to_builtins(record)


def without_defaults(record: Any) -> Any:
    """As `to_plain`, without the fields that have their default: what was not computed has no key."""
    if is_dataclass(record):
        values = {field: getattr(record, field.name) for field in fields(record)}
        return {field.name: without_defaults(value) for field, value in values.items() if value != field.default}
    if isinstance(record, dict):
        return {key: without_defaults(value) for key, value in record.items()}
    if isinstance(record, list | tuple):
        return [without_defaults(value) for value in record]
    return to_plain(record)


def from_plain(kind: type[T], values: Any) -> T:
    """The record of this type. Fields that are missing have their defaults, unknown ones are ignored."""
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"not a valid {kind.__name__}: {error}") from error


def dumps(record: Any) -> str:
    """A record as JSON, indented for people."""
    return json.dumps(to_plain(record), indent=1)
