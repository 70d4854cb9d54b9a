"""The command line. Tables for people, `--json` for machines; a command's module is imported only when it is needed."""

from __future__ import annotations

import sys

import click

import ssvi
from ssvi.cli.lazy import LazyGroup
from ssvi.errors import UserError


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
