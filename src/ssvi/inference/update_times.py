"""When gamma is updated: every M-th batch, and again soon after an attempt that could not be made."""

from __future__ import annotations

import warnings
from typing import Any

from ssvi.inference import distributed
from ssvi.inference.watch import TrainingWarning
from ssvi.nn.warning_level import level_of_user

PATIENCE = 32
"""Attempts in a row that may fail. A GradScaler halves its scale at each overflow: from 2^16 it is at 1 after 16."""


class UpdateTimes:
    """Counts batches, and says when an update is due.

    An update that cannot be made, because its batches had no finite gradient, is tried again with the batches after them.

    Args:
        every: M, the number of batches per update.
        batches: K, how many batches an update needs.
        until: after this many batches no update is due.
    """

    def __init__(self, every: int, batches: int, until: int | None) -> None:
        self.every, self.batches, self.until = every, batches, until
        self.count = 0
        """Batches so far."""
        self._retry_at: int | None = None
        self._failures = 0

    def due_in(self, batches: int) -> bool:
        """Whether an update is due at the end of so many batches from now."""
        at = self.count + batches
        if self.until is not None and at > self.until:
            return False
        waits = self._retry_at is not None and self._retry_at >= at
        return at == self._retry_at if waits else at % self.every == 0

    @property
    def listens(self) -> bool:
        """Whether the next batch is one of those that the next update needs."""
        return any(self.due_in(batches) for batches in range(1, self.batches + 1))

    def succeed(self) -> None:
        """The update that is due is done."""
        self._retry_at, self._failures = None, 0

    def postpone(self, reason: str) -> None:
        """The update that is due cannot be made. Say so the first time; after too many times in a row it is an error."""
        self._failures += 1
        if self._failures > PATIENCE:
            raise FloatingPointError(
                f"subspace.step(): {reason}, for {self._failures} updates of gamma in a row. Lower the learning rate, clip "
                "gradients, or look for NaN in the input; and call step() once per batch, after loss.backward()"
            )
        if self._failures == 1 and distributed.rank() == 0:
            message = f"subspace.step(): {reason}, so this update of gamma waits for the next batches"
            warnings.warn(message, TrainingWarning, stacklevel=level_of_user())
        self._retry_at = self.count + 1 + self.batches

    def state_dict(self) -> dict[str, Any]:
        """The number of batches, and what is postponed."""
        return {"calls": self.count, "retry_at": self._retry_at, "failures": self._failures}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, of this version or of an earlier one, which knew no second attempts."""
        self.count = state["calls"]
        self._retry_at, self._failures = state.get("retry_at"), state.get("failures", 0)
