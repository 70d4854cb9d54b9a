"""The command line: tables for people, `--json` for machines.

Most commands import torch, which takes seconds. `ssvi --help`, `ssvi --version` and the completion of a command's name
need only the names and the short helps in `ssvi.cli.commands`; the module of a command is imported when it is asked for.
"""

from __future__ import annotations

import sys
import traceback
from typing import Any

import click

import ssvi
from ssvi.cli import endings
from ssvi.cli.commands import COMMANDS, DEBUG, SHOW_TRACEBACKS, load_command
from ssvi.cli.endings import ClosedPipe, Interrupted
from ssvi.cli.warning_lines import warnings_as_lines
from ssvi.errors import UserError
from ssvi.signals import exit_at_once, exit_code, handled_by, raise_stopped

__all__ = ["COMMANDS", "cli", "load_command", "main"]


class LazyGroup(click.Group):
    """Holds a placeholder for each command, enough to list it, and loads the command itself when it is resolved."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for name, (_, short_help) in COMMANDS.items():
            self.add_command(click.Command(name, help=short_help))

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """The context of the words. `--help` and `--version` write already here, perhaps into a pipe that is closed."""
        try:
            return super().make_context(*args, **settings)
        except BrokenPipeError as error:
            raise ClosedPipe from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name: loaded, and no placeholder any more; for completion its outline."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        if name is None:
            return name, placeholder, rest
        if ctx.resilient_parsing:
            from ssvi.cli.completion import outline

            return name, outline(name), rest
        with handled_by(exit_at_once):  # this may import torch
            return name, load_command(name), rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Signals and a closed pipe become the endings that they have; --debug shows tracebacks."""
        try:
            with handled_by(raise_stopped), warnings_as_lines():
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(endings.signal_name(stop)) from stop
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (Exception, SystemExit) as error:
            if endings.is_closed_pipe(error):
                raise ClosedPipe from error
            if ctx.meta.get(SHOW_TRACEBACKS) and not isinstance(error, SystemExit):
                traceback.print_exception(error)
            raise


@click.group(
    cls=LazyGroup, params=[DEBUG], context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(ssvi.__version__)
def cli() -> None:
    """Bayesian neural networks that are sparse from the first training step to the last."""


def main() -> None:
    """Run the command that was typed, and end with the exit code of `ssvi.cli.endings`."""
    code: Any
    try:
        code = _run()
    except SystemExit as end:
        code = end.code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = endings.CLOSED_PIPE
    if code == endings.CLOSED_PIPE:
        endings.discard_output()
    sys.exit(code)


def _run() -> int:
    """Run the command. An error that the user can correct is one line; any other exception is a bug, and leaves a file."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:  # Ctrl-C before the command began
        return exit_code("SIGINT")
    except UserError as error:
        _print_error(str(error))
        return endings.USER_ERROR
    except Exception as error:
        return _unexpected(error)
    return 0


def _unexpected(error: Exception) -> int:
    """Say what the operating system refused; or that this is a bug of ours, and where its crash file is."""
    if line := endings.system_error(error):
        _print_error(line)
        return endings.USER_ERROR
    from ssvi.cli.crash import report_bug

    _print_error(report_bug(error))
    return endings.BUG


def _print_error(message: str) -> None:
    from rich.console import Console  # here, because `--help` and `--version` do not need it
    from rich.text import Text

    line = Text("error: ", style="bold red").append(message, style="default")
    Console(stderr=True).print(line, soft_wrap=True)
