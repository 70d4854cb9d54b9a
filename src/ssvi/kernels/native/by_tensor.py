"""What is known of a tensor until it changes (an index by load_state_dict or an update of gamma) or dies.

torch's WeakTensorKeyDictionary does the same in tens of microseconds for each look, as long as a small layer computes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar
from weakref import ref

from torch import Tensor

T = TypeVar("T")


class _Entry(NamedTuple, Generic[T]):
    """The value, whose it is, and by what a change of the tensor is noticed."""

    owner: ref[Tensor]
    version: int
    address: int
    value: T

    def holds_for(self, tensor: Tensor) -> bool:
        return self.owner() is tensor and self.version == tensor._version and self.address == tensor.data_ptr()


class ByTensor(Generic[T]):
    """Values by the tensor that they are about. No locks: two threads may compute one twice, and both are right."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry[T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, tensor: Tensor) -> T | None:
        """What was kept for this tensor as it is now."""
        entry = self._entries.get(id(tensor))
        return entry.value if entry is not None and entry.holds_for(tensor) else None

    def keep(self, tensor: Tensor, value: T) -> T:
        """Remember the value, and return it."""
        key = id(tensor)
        owner = ref(tensor, partial(self._forget, key))
        self._entries[key] = _Entry(owner, tensor._version, tensor.data_ptr(), value)
        return value

    def of(self, tensor: Tensor, compute: Callable[[], T]) -> T:
        """What was kept; if nothing was, what is computed now."""
        known = self.get(tensor)
        return self.keep(tensor, compute()) if known is None else known

    def _forget(self, key: int, dead: ref[Tensor]) -> None:
        """The tensor is gone; another one may have its place already."""
        entry = self._entries.get(key)
        if entry is not None and entry.owner is dead:
            self._entries.pop(key, None)
