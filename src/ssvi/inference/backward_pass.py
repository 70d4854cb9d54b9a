"""When a layer has had all its gradients of a backward pass.

A weight that is used several times has the sum of their gradients, so the last of them has to be waited for. A use may
never get one: the output of a second forward pass is kept, but not differentiated (a target network, a log). So the end is
the last gradient if every use that still exists has had its own, or else the end of the whole backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

import torch


class Use:
    """One use of a layer whose gradient has not arrived yet."""


class BackwardPass:
    """Calls `on_end` once for each backward pass through a layer, after its last gradient."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._pending: WeakSet[Use] = WeakSet()
        self._waits_for_engine = False

    def expect(self) -> Use:
        """The layer was used. The hook that waits for the gradient must hold the result, and nothing else may.

        A graph that is thrown away without a backward pass then takes its use with it.
        """
        use = Use()
        self._pending.add(use)
        return use

    def arrived(self, use: Use) -> None:
        """The gradient of this use has arrived."""
        self._pending.discard(use)
        if not self._pending:
            self._end()
        elif not self._waits_for_engine:
            self._waits_for_engine = True
            torch.autograd.Variable._execution_engine.queue_callback(self._end_of_engine)

    def reset(self) -> None:
        """A batch begins. Nothing waits any more, even if the last backward pass ended by an error."""
        self._waits_for_engine = False

    def _end(self) -> None:
        self._waits_for_engine = False
        self._on_end()

    def _end_of_engine(self) -> None:
        """Unless the last gradient has come after all."""
        if self._waits_for_engine:
            self._end()
