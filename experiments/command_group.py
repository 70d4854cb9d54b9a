"""The commands of an experiment: an error that the user can correct is one line."""

from __future__ import annotations

from typing import Any

import click

from ssvi.errors import UserError


class Commands(click.Group):
    """Prints an error that the user can correct as one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            raise click.ClickException(str(error)) from error
