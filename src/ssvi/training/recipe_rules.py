"""The rules of the settings that all methods have: what a value must be, wherever it comes from."""

from __future__ import annotations

import re

from ssvi.data import is_size
from ssvi.data.fitting import LARGEST_SIDE
from ssvi.methods.settings import Rule, is_text, whole
from ssvi.nn.models import BY_NAME
from ssvi.nn.row_models import FOR_ROWS

MOST_THREADS = 1024
"""More threads end the process: the system has no room for their stacks. It is not the number of this machine's cores,
for a recipe may come from a larger machine."""

NETWORKS = (*BY_NAME, *FOR_ROWS)

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
