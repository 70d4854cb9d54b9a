"""The rules of the settings that all methods have: what a value must be, wherever it comes from."""

from __future__ import annotations

import re

from ssvi import methods
from ssvi.data import is_size
from ssvi.data.fitting import LARGEST_SIDE
from ssvi.methods.settings import RecipeError, Rule, is_text, whole
from ssvi.nn.models import BY_NAME
from ssvi.nn.row_models import FOR_ROWS

MOST_THREADS = 1024
"""More threads end the process: the system has no room for their stacks. It is not the number of this machine's cores,
for a recipe may come from a larger machine."""

NETWORKS = (*BY_NAME, *FOR_ROWS)

PRECISIONS = ("float32", "bfloat16")

DATA = Rule(lambda v: bool(v) and is_text(v), "the name of a data set, or a path")
SIZE = Rule(is_size, f"empty, N or HxW (height x width), from 1 to {LARGEST_SIDE} pixels")
CHANNELS = Rule(lambda v: v in (0, 1, 3), "0, 1 or 3")
MODEL = Rule(
    lambda v: v in NETWORKS or (is_text(v) and ":" in v),
    f"one of {', '.join(NETWORKS)}, or your own as package.module:function",
)
DEVICE = Rule(
    lambda v: re.fullmatch(r"(?!meta)[a-z]{1,20}(:\d{1,3})?", v) is not None,
    "a device such as cpu, cuda, cuda:1 or mps",
)
SEED = Rule(lambda v: 0 <= v < 2**63, "0 or more, and below 2^63")
WIDTH, SAMPLES, THREADS = whole(0, 1_000_000), whole(1, 10_000), whole(0, MOST_THREADS)


def check_warm_start(warm_start: float, epochs: int, method: str) -> None:
    """An error where a start from a trained network leaves no epoch to the method, or would be the same for all members."""
    if not warm_start:
        return
    if methods.about(method).members_by is not None:
        raise RecipeError(
            f"warm_start={warm_start}: the members of {method!r} start from weights of their own; leave it out"
        )
    if max(1, round(warm_start * epochs)) >= epochs:
        raise RecipeError(
            f"warm_start={warm_start} of epochs={epochs} leaves no epoch to the method: raise epochs or lower warm_start"
        )
