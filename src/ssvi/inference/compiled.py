"""Compiled networks: compiled code cannot ask for its thread, so predictions with them take turns."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import nn

_lock = threading.RLock()


def taking_turns(net: nn.Module) -> AbstractContextManager[Any]:
    """Inside, no other thread predicts with a compiled network, if this one is compiled or has a compiled module."""
    return _lock if any(_is_compiled(module) for module in net.modules()) else nullcontext()


def _is_compiled(module: nn.Module) -> bool:
    """Whether it comes from `torch.compile(module)`, or `module.compile()` was called."""
    # By name, because importing that class takes a second.
    return type(module).__name__ == "OptimizedModule" or module._compiled_call_impl is not None
