"""Ctrl-C and SIGTERM as a request to stop, which the loop answers when it has finished the step in progress."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop_signal(ask: Callable[[str], None], *, once: bool = False) -> Iterator[None]:
    """Inside, a signal to stop calls `ask` with its name instead of ending the process.

    With `once` a second signal acts as it did before, so that an impatient user can still end the process.
    """
    before = {number: signal.getsignal(number) for number in STOPPING}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        if once:
            restore()
        ask(signal.Signals(number).name)

    for number in STOPPING:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
