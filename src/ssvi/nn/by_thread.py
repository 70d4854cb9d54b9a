"""A value that belongs to one thread: several threads share a network, and each has it at its own theta."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

import torch

Value = TypeVar("Value")

_lock = threading.Lock()


class ByThread(Generic[Value]):
    """At most one value for each thread. A copy or a pickle has none.

    torch has threads of its own for backward passes on other devices, and they may compute a layer again (activation
    checkpointing). Such a thread has no value, and takes the newest one.
    """

    newest: Value | None
    """The value that was set last and is still there. Compiled code sees it: a compiler cannot ask for the thread."""

    def __init__(self) -> None:
        self._values: dict[int, Value] = {}
        self.newest = None

    def __reduce__(self) -> tuple[type[ByThread[Value]], tuple[()]]:
        return ByThread, ()

    def get(self) -> Value | None:
        """The value of this thread, or None."""
        if torch.compiler.is_compiling():
            return self.newest
        if not self._values:
            return None
        own = self._values.get(threading.get_ident())
        in_backward_pass = torch._C._current_graph_task_id() != -1
        return self.newest if own is None and in_backward_pass else own

    def set(self, value: Value | None) -> None:
        """Give this thread another value, or none."""
        with _lock:
            self._values.pop(threading.get_ident(), None)
            if value is not None:
                self._values[threading.get_ident()] = value
            self.newest = next(reversed(self._values.values()), None)

    def any(self) -> bool:
        """Whether some thread has a value."""
        return bool(self._values)
