"""Functions that torch's compiler must not look into, without loading it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from torch._compile import _disable_dynamo

P = ParamSpec("P")
T = TypeVar("T")


def hidden_from_compiler(function: Callable[P, T]) -> Callable[P, T]:
    """What `torch.compiler.disable` does, which loads the compiler: two seconds of every process that trains.

    Where nobody else has loaded it, there is nothing to hide from.
    """
    hidden = _disable_dynamo(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        return (hidden if "torch._dynamo" in sys.modules else function)(*args, **kwargs)

    return called
