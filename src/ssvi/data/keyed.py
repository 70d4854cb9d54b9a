"""Randomness by key."""

from __future__ import annotations

import numpy as np
import torch


def keyed_generator(*key: int) -> torch.Generator:
    """A generator for this key of non-negative integers, independent of those for other keys."""
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))
