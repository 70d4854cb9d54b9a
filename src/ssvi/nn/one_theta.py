"""One theta for each call of a layer: what the layer reads twice in a call is the same tensor both times.

The draws of a call belong to the thread that makes it, so several threads can share one network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ssvi.nn.sparse import SparsePosterior

# A thread-local and not a context variable: torch.compile can trace it.
_call = threading.local()


def with_one_theta(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """forward(*args, **kwargs), in which each posterior has one theta."""
    before = getattr(_call, "thetas", None)
    _call.thetas = {}
    try:
        return forward(*args, **kwargs)
    finally:
        _call.thetas = before


def theta_of_call(posterior: SparsePosterior, draw: Callable[[], Tensor]) -> Tensor:
    """The theta that this posterior has in the call of a layer, drawn at its first use; outside of a call a fresh one."""
    thetas: dict[SparsePosterior, Tensor] | None = getattr(_call, "thetas", None)
    if thetas is None:
        return draw()
    if posterior not in thetas:
        thetas[posterior] = draw()
    return thetas[posterior]
