"""The settings of methods: each field carries its default, its help and its rule, in one place.

A method's `Settings` is a frozen dataclass made of groups (`ssvi.methods.groups`), or with fields of its own. Where a
library function has the default, the field reads it from the function's signature, so that the two cannot disagree.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from ssvi.errors import UserError


class RecipeError(UserError, ValueError):
    """A recipe that cannot be used: names the setting, the value and the remedy."""


class Rule(NamedTuple):
    """What a value must satisfy, the words for it after "must be", and the words that a value may be."""

    holds: Callable[[Any], bool]
    must: str
    choices: tuple[str, ...] = ()


def at_least(low: float) -> Rule:
    """A finite number that is not smaller."""
    return Rule(lambda v: low <= v < math.inf, f"{low} or more" if low == 0 else f"at least {low}")


def share(of: str, *, low_open: bool = False, high_open: bool = False) -> Rule:
    """A number between 0 and 1."""
    text = f"in {'(' if low_open else '['}0, 1{')' if high_open else ']'}: a share of {of}"
    return Rule(lambda v: 0 <= v <= 1 and not (low_open and v == 0) and not (high_open and v == 1), text)


def one_of(names: Iterable[str]) -> Rule:
    """One of these words."""
    known = tuple(names)
    return Rule(lambda v: v in known, f"one of {', '.join(known)}", known)


def word_or_positive(*words: str, zero: bool = False) -> Rule:
    """One of these words, or a positive number."""

    def holds(value: str | float) -> bool:
        number = word_or_number(value)
        return number in words if isinstance(number, str) else 0 <= number < math.inf and (zero or number > 0)

    quoted = ", ".join(map(repr, words))
    return Rule(holds, f"{quoted} or {'a number, 0 or more' if zero else 'a positive number'}", words)


POSITIVE = Rule(lambda v: 0 < v < math.inf, "positive and finite")


def setting(default: Any, text: str, rule: Rule | None = None) -> Any:
    """A field of a recipe or of a method's settings."""
    return field(default=default, metadata={"help": text, "rule": rule})


def default_of(function: Callable[..., Any], name: str) -> Any:
    """The default that a library function has for this argument."""
    return inspect.signature(function).parameters[name].default


def check(record: object) -> None:
    """Refuse a dataclass with a field whose rule does not hold; the error names the first one."""
    for declared in fields(record):  # type: ignore[arg-type]
        rule: Rule | None = declared.metadata.get("rule")
        value = getattr(record, declared.name)
        if rule is not None and not rule.holds(value):
            raise RecipeError(f"{declared.name}={value!r} must be {rule.must}")


def word_or_number(value: str | float) -> str | float:
    """The number that a text is, or the text itself: flags and recipes may write both as text, the library takes either."""
    try:
        return float(value)
    except ValueError:
        return value


def takes_words_and_numbers(declared: Field[Any]) -> bool:
    """Whether the declared type of a setting is `str | float`; a recipe then holds its numbers as numbers."""
    return str(declared.type) == "str | float"


def same_type(a: Field[Any], b: Field[Any]) -> bool:
    """Whether two settings have the same declared type."""
    return str(a.type) == str(b.type)


@dataclass(frozen=True)
class Settings:
    """The settings of a method. This one has none; the groups add theirs.

    `GROUP` of a group says where `--help` shows its settings. Those that a method declares itself are shown apart.
    """

    GROUP: ClassVar[str]

    def __post_init__(self) -> None:
        check(self)


def settings_fields(kind: type[Settings]) -> Mapping[str, Field[Any]]:
    """The fields of a method's settings by name."""
    return {declared.name: declared for declared in fields(kind)}


def help_group(kind: type[Settings], name: str) -> str | None:
    """The group in which `--help` shows a setting: that of the class that declares it; None if the method does itself."""
    settings = (base for base in kind.__mro__ if issubclass(base, Settings))
    declaring = next(base for base in settings if name in inspect.get_annotations(base))
    return None if declaring is kind else declaring.GROUP
