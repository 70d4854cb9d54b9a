"""A network in evaluation mode for a while, also while several threads use it at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from torch import nn

_lock = threading.Lock()
_users: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()
"""The modules that were in training mode and are now in evaluation mode, and how many blocks need that."""


@contextmanager
def in_eval_mode(net: nn.Module) -> Iterator[None]:
    """Inside, every module is in evaluation mode; afterwards each has the mode that it had before.

    The mode is one flag of a module, for all threads. So the first block that needs it sets it, the last one sets it back,
    and a network that is in evaluation mode anyway is not touched.
    """
    switched = _enter(net)
    try:
        yield
    finally:
        _leave(switched)


def _enter(net: nn.Module) -> list[nn.Module]:
    with _lock:
        switched = [module for module in net.modules() if module.training or module in _users]
        for module in switched:
            _users[module] = _users.get(module, 0) + 1
            module.training = False
    return switched


def _leave(switched: list[nn.Module]) -> None:
    with _lock:
        for module in switched:
            _users[module] -= 1
            if not _users[module]:
                del _users[module]
                module.training = True
