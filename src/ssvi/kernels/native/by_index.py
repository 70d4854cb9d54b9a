"""What was computed of an index and holds until the index changes: by load_state_dict, an update of gamma, or its death.

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
    """The value, whose it is, and by what a change of the index is noticed."""

    owner: ref[Tensor]
    version: int
    address: int
    value: T

    def holds_for(self, index: Tensor) -> bool:
        return self.owner() is index and self.version == index._version and self.address == index.data_ptr()


class ByIndex(Generic[T]):
    """Values by the index that they were computed of. No locks: two threads may compute one twice, and both are right."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry[T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def of(self, index: Tensor, compute: Callable[[], T]) -> T:
        """The value for this index, which is computed if there is none, or one of an older version."""
        key = id(index)
        entry = self._entries.get(key)
        if entry is None or not entry.holds_for(index):
            entry = _Entry(ref(index, partial(self._forget, key)), index._version, index.data_ptr(), compute())
            self._entries[key] = entry
        return entry.value

    def _forget(self, key: int, dead: ref[Tensor]) -> None:
        """The index is gone; another one may have its place already."""
        entry = self._entries.get(key)
        if entry is not None and entry.owner is dead:
            self._entries.pop(key, None)
