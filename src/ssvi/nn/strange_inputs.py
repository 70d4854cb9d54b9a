"""What a network was given in place of tensors: the reason that a user can act on, where torch names an attribute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor


@contextmanager
def strange_inputs_named(inputs: Iterable[Any], remedy: str) -> Iterator[None]:
    """An error inside, where an input is a list, a loader or the like, says so. Networks may take such inputs."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        strange = [type(x).__name__ for x in inputs if isinstance(x, Iterable) and not isinstance(x, Tensor)]
        if not strange:
            raise
        raise TypeError(f"the network cannot take an input of type {strange[0]} ({error}): {remedy}") from error
