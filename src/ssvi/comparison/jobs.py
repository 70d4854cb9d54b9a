"""What a started task is to those who wait for it."""

from __future__ import annotations

from typing import Protocol


class Job(Protocol):
    """A task that was started. A process of `subprocess` is one."""

    returncode: int | None
    """None while it works; 0 if it ended well; negative if it was killed, or its machine was lost."""

    def poll(self) -> int | None:
        """The return code, or None while it works."""

    def terminate(self) -> None:
        """Let it save its state and end; it may take a while."""

    def wait(self) -> int:
        """Wait for its end. The return code."""
