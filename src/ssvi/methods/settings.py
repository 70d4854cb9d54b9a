"""The settings of methods: each field carries its default, its help and its rule, in one place.

A method's `Settings` is a frozen dataclass made of groups (`ssvi.methods.groups`), or with fields of its own. Where a
library function has the default, the field reads it from the function's signature, so that the two cannot disagree.
"""

from __future__ import annotations

import inspect
import reprlib
import unicodedata
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


MOST = 10**9
"""The largest whole number of a setting that has no smaller bound: more steps or examples than any run has."""

LONGEST = 4096
"""Characters of a text: as long as a path may be."""

LARGEST = 1e30
"""The largest number of a setting. It, and 1 / it, are numbers in single precision too."""

FINITE = Rule(lambda v: abs(v) <= LARGEST, f"a finite number, from -{LARGEST:g} to {LARGEST:g}")
POSITIVE = Rule(lambda v: 1 / LARGEST <= v <= LARGEST, f"positive and finite, from {1 / LARGEST:g} to {LARGEST:g}")
YES_OR_NO = Rule(lambda v: v in (True, False), "true or false")


def at_least(low: float) -> Rule:
    """A finite number that is not smaller."""
    return Rule(lambda v: low <= v <= LARGEST, f"{low} or more, and at most {LARGEST:g}")


def whole(low: int, high: int = MOST) -> Rule:
    """A whole number in this range."""
    return Rule(lambda v: low <= v <= high, f"{low} or more, and at most {high}")


def is_text(value: str) -> bool:
    """Whether it is one line that a recipe file can hold: no line ends, no other control characters, no half characters."""
    return len(value) <= LONGEST and not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)


TEXT = Rule(is_text, f"one line of text, without control characters, of at most {LONGEST}")
TEXTS = Rule(lambda v: all(item and is_text(item) for item in v), "names, each one line and not empty")


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
        return number in words if isinstance(number, str) else POSITIVE.holds(number) or (zero and number == 0)

    quoted = ", ".join(map(repr, words))
    kind = "a number, 0 or" if zero else "a positive number"
    return Rule(holds, f"{quoted} or {kind} from {1 / LARGEST:g} to {LARGEST:g}", words)


BY_TYPE: dict[type, Rule] = {bool: YES_OR_NO, int: whole(-MOST), float: FINITE, str: TEXT, tuple: TEXTS}
"""The rule of a setting that names none, by the type of its default."""


def setting(default: Any, text: str, rule: Rule | None = None) -> Any:
    """A field of a recipe or of a method's settings; without a rule, it has that of its type."""
    return field(default=default, metadata={"help": text, "rule": rule or BY_TYPE[type(default)]})


def default_of(function: Callable[..., Any], name: str) -> Any:
    """The default that a library function has for this argument."""
    return inspect.signature(function).parameters[name].default


def check(record: object) -> None:
    """Refuse a dataclass with a field of another type, or whose rule does not hold; the error names the first one."""
    for declared in fields(record):  # type: ignore[arg-type]
        if "rule" in declared.metadata:
            check_value(declared, getattr(record, declared.name))


def check_value(declared: Field[Any], value: Any) -> None:
    """Refuse a value that the field cannot have."""
    if type(value) not in _types(declared) or (type(value) is tuple and any(type(item) is not str for item in value)):
        raise wrong_type(declared, value)
    rule: Rule = declared.metadata["rule"]
    if not rule.holds(value):
        raise RecipeError(f"{declared.name}={reprlib.repr(value)} must be {rule.must}")


def wrong_type(declared: Field[Any], value: object) -> RecipeError:
    """The error for a value that is no number where one is needed, or no text, or no list."""
    kind = type(declared.default)
    needed = "a list of names in quotes" if kind is tuple else f"of type {kind.__name__}"
    return RecipeError(f"{declared.name}={reprlib.repr(value)} must be {needed}")


def _types(declared: Field[Any]) -> tuple[type, ...]:
    """The types that a value may have: a whole number is a number too, but True is none."""
    if takes_words_and_numbers(declared):
        return (str, int, float)
    kind = type(declared.default)
    return (int, float) if kind is float else (kind,)


def word_or_number(value: str | float) -> str | float:
    """The number that a text is, or the text itself: flags and recipes may write both as text, the library takes either."""
    try:
        return float(value)
    except (ValueError, OverflowError):
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
