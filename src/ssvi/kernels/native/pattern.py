"""The support as the kernels walk it, built once for an index and kept until the index changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import byref, c_int64
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ssvi.kernels.native import library as native

_SHAPES_KEPT = 4  # a layer meets one shape of x in training, and a second one in the last batch of an epoch


class _Entry(NamedTuple):
    version: int
    address: int
    by_shape: dict[tuple[int, ...], tuple[native.Pattern, tuple[Tensor, ...]]]


_cache = WeakTensorKeyDictionary()  # index -> _Entry; an index that dies takes its patterns along


def build(index: Tensor, x_shape: Sequence[int], layer: Sequence[int]) -> tuple[native.Pattern, tuple[Tensor, ...]]:
    """The pattern of `index` for inputs of one shape, and the tensors that own its memory."""
    d = math.prod(layer[:4])
    if index.dtype != torch.int32 or index.dim() != 1:
        raise TypeError(f"index: int32 positions in one dimension are needed, not {index.dtype} {tuple(index.shape)}")
    if index.numel() and not (index[0] >= 0 and index[-1] < d and (index.diff() > 0).all()):
        raise ValueError(f"index: positions must increase from 0 to at most {d - 1}")
    shape = native.shape_of(x_shape, layer)
    index = index.contiguous()
    slots = native.library().ssvi_slots(byref(shape))
    sizes = (layer[0] + 1, index.numel(), slots + 1, index.numel(), index.numel())
    arrays = tuple(torch.empty(size, dtype=torch.int32) for size in sizes)
    native.library().ssvi_pattern(
        byref(shape), native.pointer(index), c_int64(index.numel()), *map(native.pointer, arrays)
    )
    return native.Pattern(index.numel(), *(a.data_ptr() for a in arrays)), arrays


def pattern_of(
    index: Tensor, x_shape: Sequence[int], layer: Sequence[int]
) -> tuple[native.Pattern, tuple[Tensor, ...]]:
    """`build`, remembered: an in-place change of `index` (load_state_dict, an update of gamma) is noticed."""
    if index.is_inference():  # has no version to compare
        return build(index, x_shape, layer)
    # No lock: two threads may build the same pattern at once, and both are right.
    key = (*x_shape, *layer)
    entry = _cache.get(index)
    if entry is None or entry.version != index._version or entry.address != index.data_ptr():
        entry = _cache[index] = _Entry(index._version, index.data_ptr(), {})
    found = entry.by_shape.get(key)
    if found is None:
        for old in list(entry.by_shape)[: 1 - _SHAPES_KEPT]:
            entry.by_shape.pop(old, None)
        found = entry.by_shape[key] = build(index, x_shape, layer)
    return found
