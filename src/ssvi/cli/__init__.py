"""The command line: tables for people, `--json` for machines.

Most commands import torch, which takes seconds. `ssvi --help`, `ssvi --version` and the completion of a command's name
need only the names and the short helps in the table below; the module of a command is imported when it is asked for.
"""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any

import click

import ssvi
from ssvi.cli import endings
from ssvi.cli.endings import ClosedPipe, Interrupted
from ssvi.errors import UserError
from ssvi.signals import exit_at_once, exit_code, handled_by, raise_stopped

COMMANDS = {
    "bench": (
        "ssvi.cli.bench:bench_command",
        "Measure speed and memory against dense VI and the deterministic network. Takes minutes; needs an idle machine.",
    ),
    "compare": (
        "ssvi.cli.compare:compare_command",
        "Train a RECIPE by several methods, densities and seeds, and print the tables of the paper.",
    ),
    "corrupt": (
        "ssvi.cli.evaluate:corrupt_command",
        "Quality of RUN under the 15 common corruptions at 5 severities.",
    ),
    "demo": (
        "ssvi.cli.demo:demo_command",
        "Two minutes, offline: plain training, dense variational inference and SSVI at 95 % sparsity on handwritten digits.",
    ),
    "doctor": (
        "ssvi.cli.installation:doctor_command",
        "Tell what this installation has: versions, threads, kernels, and what is missing.",
    ),
    "evaluate": (
        "ssvi.cli.evaluate:evaluate_command",
        "Quality of the predictions of RUN on its test images or rows, with intervals; and what the network costs.",
    ),
    "inspect": (
        "ssvi.cli.inspect:inspect_command",
        "Show each layer of RUN after training, and whether the removal criteria choose the same weights.",
    ),
    "ood": (
        "ssvi.cli.evaluate:ood_command",
        "Does the uncertainty of RUN show which images belong to none of its classes?",
    ),
    "predict": (
        "ssvi.cli.predict:predict_command",
        'What RUN says of image files, of all images in folders, or of the rows of a table; or "don\'t know".',
    ),
    "recipes": (
        "ssvi.cli.installation:recipes_command",
        "List the recipes that come with the package, and the data sets that it knows.",
    ),
    "report": (
        "ssvi.cli.report:report_command",
        "One self-contained HTML page about one RUN, or several side by side; and the same as Markdown, a model card.",
    ),
    "serve": (
        "ssvi.cli.serve:serve_command",
        "Answer images over HTTP with RUN: class, probabilities and uncertainty as JSON, and a page to drop an image on.",
    ),
    "train": (
        "ssvi.cli.train:train_command",
        "Train a network by a RECIPE: a name from `ssvi recipes` (default: digits) or the path of a .toml file.",
    ),
    "tune": (
        "ssvi.cli.compare:tune_command",
        "Try the same number of settings for each method, and print the best as tables for the RECIPE.",
    ),
}
"""Name: where the command is, as module:attribute, and the first line of its docstring."""


def _show_tracebacks(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Note `--debug`, which may stand before the name of the command or behind it."""
    ctx.meta["ssvi.debug"] = value or ctx.meta.get("ssvi.debug", False)


DEBUG = click.Option(
    ["--debug"], is_flag=True, is_eager=True, expose_value=False, callback=_show_tracebacks,
    help="Show the traceback of every error.",
)  # fmt: skip


def load_command(name: str) -> click.Command:
    """The command of this name; imports its module."""
    module, attribute = COMMANDS[name][0].split(":")
    command: click.Command = getattr(import_module(module), attribute)
    if DEBUG not in command.params:
        command.params.append(DEBUG)
    return command


class LazyGroup(click.Group):
    """Holds a placeholder for each command, enough to list it, and loads the command itself when it is resolved."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for name, (_, short_help) in COMMANDS.items():
            self.add_command(click.Command(name, help=short_help))

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
            with handled_by(raise_stopped):
                return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted(endings.signal_name(stop)) from stop
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (Exception, SystemExit) as error:
            if endings.is_closed_pipe(error):
                raise ClosedPipe from error
            if ctx.meta.get("ssvi.debug") and not isinstance(error, SystemExit):
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
    code = _run()
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
