"""Where the large tensors of a training step lie: next to each other, in memory that stays in the process for the next step.

The C library's allocator leaves gaps between tensors of different sizes, which made the peak of a process twice what was
alive in it, and lets the system clear the pages of the largest ones at each use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from ssvi.kernels.native.library import library

LEAST_NUMBERS = 1 << 17
"""Smaller tensors are left to torch: half a megabyte fits into the gaps of any heap."""
_CAPSULE = b"dltensor"  # its name is kept by address
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def empty(shape: Sequence[int], half: bool = False) -> Tensor:
    """A contiguous float32 tensor (batch, channels, rows, columns), or (batch, channels), without values.

    With `half` it is bfloat16.
    """
    large = prod(shape) >= LEAST_NUMBERS
    block = library().ssvi_arena_take((ctypes.c_int64 * 4)(*(*shape, 1, 1)[:4]), half) if large else None
    if block is None:  # small, or the system gives no such range of addresses
        return torch.empty(shape, dtype=torch.bfloat16 if half else torch.float32)
    tensor: Tensor = from_dlpack(_new_capsule(block, _CAPSULE, None))
    return tensor if len(shape) == 4 else tensor.resize_(shape)  # a view would keep the tensor that it was made from


def trim() -> None:
    """Give the memory that no tensor uses back to the system: after training, where the process goes on with other work."""
    library().ssvi_arena_trim()


def reach() -> int:
    """The bytes that the tensors of the arena took at most, gaps included."""
    return int(library().ssvi_arena_reach())
