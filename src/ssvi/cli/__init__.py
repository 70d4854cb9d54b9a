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
from ssvi.cli.warning_lines import warnings_as_lines
from ssvi.errors import UserError

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
    "trust": (
        "ssvi.cli.trust:trust_command",
        "Let run folders and model files name code of yours: a network package.module:function, the module of a method.",
    ),
    "tune": (
        "ssvi.cli.compare:tune_command",
        "Try the same number of settings for each method, and print the best as tables for the RECIPE.",
    ),
}
"""Name: where the command is, as module:attribute, and the first line of its docstring."""


def load_command(name: str) -> click.Command:
    """The command of this name; imports its module."""
    module, attribute = COMMANDS[name][0].split(":")
    command: click.Command = getattr(import_module(module), attribute)
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
        """The command that the arguments name: loaded, and no placeholder any more."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder if name is None else load_command(name), rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. With --debug, an error of the user comes with its traceback."""
        try:
            with warnings_as_lines():
                return super().invoke(ctx)
        except UserError as error:
            if ctx.params["debug"]:
                traceback.print_exception(error)
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(ssvi.__version__)
@click.option("--debug", is_flag=True, help="Show the traceback of every error.")
def cli(debug: bool) -> None:
    """Bayesian neural networks that are sparse from the first training step to the last."""


def main() -> None:
    """Run the command that was typed: the entry point of `ssvi` and of `python -m ssvi`.

    An error that the user can correct is one line. Any other exception is a bug, and its traceback is not hidden.
    """
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except UserError as error:
        _print_error(error)
        sys.exit(1)


def _print_error(error: UserError) -> None:
    from rich.console import Console  # here, because `--help` and `--version` do not need it
    from rich.text import Text

    line = Text("error: ", style="bold red").append(str(error), style="default")
    Console(stderr=True).print(line, soft_wrap=True)
