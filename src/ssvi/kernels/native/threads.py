"""How many threads a kernel takes: as many as torch, but no more than it has work for, and cores are free for.

A thread that sleeps, or whose core another process has, comes late, and all others wait for it: tens of microseconds at
best, a time slice of the operating system at worst. So small layers run in the thread that calls, and where other
processes have cores (cores.cpp looks every fifth of a second), fewer threads do the same parts of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ssvi.kernels.native.library import library

LEAST_WORK = 1 << 18
"""The work of a thread that is worth starting it, in numbers that are read or written: about 120 microseconds.

At a quarter of it two threads were slower than one in small layers, and twice as slow where another process had a core.
"""
_PRODUCTS = 8
"""Products with live weights in the time of one such number."""


def threads_for(numbers: int, products: int = 0) -> int:
    """The parts into which a kernel that reads and writes so many numbers and multiplies so many pairs cuts its work.

    It depends on the sizes of a layer alone, so a run repeats to the bit. At most as many threads work on them.
    """
    work = numbers + products // _PRODUCTS
    return max(1, min(torch.get_num_threads(), work // LEAST_WORK))


def working(parts: int) -> int:
    """How many threads would work on so many parts now."""
    return int(library().ssvi_workers(parts))


@contextmanager
def at_a_time(threads: int) -> Iterator[None]:
    """Inside, no more threads than this work at a time, whether cores are free or not. Results are the same to the bit."""
    library().ssvi_limit_workers(threads)
    try:
        yield
    finally:
        library().ssvi_limit_workers(0)
