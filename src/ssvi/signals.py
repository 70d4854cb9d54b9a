"""Ctrl-C (SIGINT) and SIGTERM: the exit codes that POSIX has for them, and three answers to them.

While the program is loaded, a signal ends the process at once (`exit_at_once`). While a command works, a signal is an
exception (`Stopped`). While a network is trained, it is a request that the loop answers when it has finished the step in
progress (`on_stop_signal`). A signal that was ignored when the process began stays ignored, as for `ssvi train &` in a
script.

This module imports no torch, so that the first lines of the program can use it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

STOPPING = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], None]


class Stopped(KeyboardInterrupt):
    """A signal has stopped the command; `name` is that of the signal."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def exit_code(name: str) -> int:
    """128 + the number of the signal: 130 for SIGINT, 143 for SIGTERM. Another reason to stop counts as SIGINT."""
    return 128 + (signal.Signals[name] if name in signal.Signals.__members__ else signal.SIGINT)


def exit_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """A handler that ends the process without a word. An exception might be lost inside of an import."""
    os._exit(128 + number)


def raise_stopped(number: int, frame: FrameType | None) -> NoReturn:
    """A handler that raises `Stopped`. A second signal ends the process at once, so that nobody has to wait."""
    set_handlers(exit_at_once)
    raise Stopped(signal.Signals(number).name)


def set_handlers(handler: Handler) -> dict[signal.Signals, Any]:
    """Let the signals to stop call `handler`; returns the handlers that were there before."""
    if threading.current_thread() is not threading.main_thread():
        return {}  # Python allows it in the main thread alone
    before = {number: signal.getsignal(number) for number in STOPPING}
    before = {number: earlier for number, earlier in before.items() if earlier is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    return before


@contextmanager
def handled_by(handler: Handler) -> Iterator[None]:
    """Inside, the signals to stop call `handler`."""
    before = set_handlers(handler)
    try:
        yield
    finally:
        _restore(before)


@contextmanager
def on_stop_signal(ask: Callable[[str], None], *, once: bool = False) -> Iterator[None]:
    """Inside, a signal to stop calls `ask` with its name instead of ending the process.

    With `once` a second signal acts as it did before, so that an impatient user can still end the process.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if once:
            _restore(before)
        ask(signal.Signals(number).name)

    before = set_handlers(handle)
    try:
        yield
    finally:
        _restore(before)


def _restore(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
