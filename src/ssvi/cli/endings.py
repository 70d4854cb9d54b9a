"""How a command ends: for each way there is one line for the user, and an exit code.

0    done
1    an error that the user can correct, or one of the operating system: no space, no permission, no memory
2    the words of the command are wrong
70   a bug of ours (EX_SOFTWARE of sysexits.h)
130  SIGINT, which is Ctrl-C
141  the reader of our output has closed it: `ssvi recipes | head -1`
143  SIGTERM
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from ssvi.signals import Stopped, exit_code

USER_ERROR, BUG, CLOSED_PIPE = 1, 70, 141

SAME_COMMAND = "stopped; the same command starts again"

_SYSTEM_ERRORS = {
    errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE,
    errno.EISDIR, errno.ENOTDIR,
}  # fmt: skip
"""Errors of the operating system that no program can avoid: a disk that is full, a folder where a file should be."""


class Interrupted(click.ClickException):
    """A signal has ended the command."""

    def __init__(self, name: str, text: str = SAME_COMMAND) -> None:
        super().__init__(f"{name}: {text}")
        self.exit_code = exit_code(name)  # type: ignore[misc] # click declares it for the class, and reads the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line that says how to go on."""
        click.echo(self.message, err=True)


class ClosedPipe(click.ClickException):
    """Nobody reads our output any more; there is nothing to say, and nobody to say it to."""

    exit_code = CLOSED_PIPE

    def __init__(self) -> None:
        super().__init__("the output is closed")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print nothing."""


@contextmanager
def go_on(how: str) -> Iterator[None]:
    """Inside, a signal ends the command with the line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(signal_name(stop), how) from stop


def signal_name(stop: KeyboardInterrupt) -> str:
    """The name of the signal that has raised this."""
    return stop.name if isinstance(stop, Stopped) else "SIGINT"


def is_closed_pipe(error: BaseException) -> bool:
    """Whether an error means that our output is closed; rich answers this with `SystemExit`."""
    return isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError)


def discard_output() -> None:
    """What is still in the buffer of stdout goes nowhere, or Python would complain when it ends."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def system_error(error: Exception) -> str | None:
    """The line for an error of the operating system; None if it is another one, and so a bug."""
    if isinstance(error, OSError) and error.errno in _SYSTEM_ERRORS:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}"
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "out of memory" in str(error):
        return "there is not enough memory: lower --batch-size, --width or --samples, or end other programs"
    return None
