"""The support as the kernels walk it, built once for an index and kept until the index changes."""

from __future__ import annotations

from ctypes import byref, c_int64
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ssvi.kernels.native.library import library
from ssvi.kernels.native.structs import Convolution, Pattern, Shape, pointer

_SHAPES_KEPT = 4  # a layer meets one shape of x in training, and a second one in the last batch of an epoch


class LayerPattern(NamedTuple):
    """What a kernel must know of a layer for inputs of one shape; `arrays` own the memory of `pattern`."""

    shape: Shape
    pattern: Pattern
    arrays: tuple[Tensor, ...]


class _Entry(NamedTuple):
    """The patterns of an index, and by what a change of it is noticed."""

    version: int
    address: int
    by_shape: dict[tuple[torch.Size, Convolution], LayerPattern]


_cache = WeakTensorKeyDictionary()  # index -> _Entry; an index that dies takes its patterns along


def build(index: Tensor, x_shape: torch.Size, conv: Convolution) -> LayerPattern:
    """The pattern of `index` for inputs of one shape."""
    if index.dtype != torch.int32 or index.dim() != 1:
        raise TypeError(f"index: int32 positions in one dimension are needed, not {index.dtype} {tuple(index.shape)}")
    if index.numel() and not (index[0] >= 0 and index[-1] < conv.d and (index.diff() > 0).all()):
        raise ValueError(f"index: positions must increase from 0 to at most {conv.d - 1}")
    shape, index, s = Shape.of(x_shape, conv), index.contiguous(), index.numel()
    slots = library().ssvi_slots(byref(shape))
    arrays = tuple(torch.empty(size, dtype=torch.int32) for size in (conv.out + 1, s, slots + 1, s, s))
    library().ssvi_pattern(byref(shape), pointer(index), c_int64(s), *map(pointer, arrays))
    return LayerPattern(shape, Pattern(s, *(a.data_ptr() for a in arrays)), arrays)


def pattern_of(index: Tensor, x_shape: torch.Size, conv: Convolution) -> LayerPattern:
    """`build`, remembered: an in-place change of `index` (load_state_dict, an update of gamma) is noticed."""
    if index.is_inference():  # has no version to compare
        return build(index, x_shape, conv)
    # No lock: two threads may build the same pattern at once, and both are right.
    entry = _cache.get(index)
    if entry is None or entry.version != index._version or entry.address != index.data_ptr():
        entry = _cache[index] = _Entry(index._version, index.data_ptr(), {})
    key = (x_shape, conv)
    pattern = entry.by_shape.get(key)
    if pattern is None:
        for old in list(entry.by_shape)[: 1 - _SHAPES_KEPT]:
            entry.by_shape.pop(old, None)
        pattern = entry.by_shape[key] = build(index, x_shape, conv)
    return pattern
