"""Where a warning points: at the line of the user, from however deep inside the package it comes."""

from __future__ import annotations

import sys

_BETWEEN = ("ssvi", "torch", "contextlib")
"""The packages that lie between a warning and the user: the last one where it is given at the start of a `with`."""


def level_of_user() -> int:
    """The level, for `warnings.warn` in the function that calls this one, of the first line that is the user's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    return level
