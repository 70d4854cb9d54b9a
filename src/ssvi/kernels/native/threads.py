"""How many threads a kernel takes: as many as torch, but no more than it has work for.

A thread that sleeps, or whose core another process has, comes late, and all others wait for it: tens of microseconds at
best, a time slice of the operating system at worst. So small layers run in the thread that calls.
"""

from __future__ import annotations

import torch

LEAST_WORK = 1 << 18
"""The work of a thread that is worth starting it, in numbers that are read or written: about 120 microseconds.

At a quarter of it two threads were slower than one in small layers, and twice as slow where another process had a core.
"""
_PRODUCTS = 8
"""Products with live weights in the time of one such number."""


def threads_for(numbers: int, products: int = 0) -> int:
    """The threads of a kernel that reads and writes so many numbers and multiplies so many pairs.

    It depends on the sizes of a layer alone, so a run repeats to the bit.
    """
    work = numbers + products // _PRODUCTS
    return max(1, min(torch.get_num_threads(), work // LEAST_WORK))
