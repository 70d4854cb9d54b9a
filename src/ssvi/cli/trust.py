"""`ssvi trust`: the names of code that run folders and model files may name."""

from __future__ import annotations

import click

from ssvi.training.trusted_code import FILE, config_folder, trust, trusted


@click.command("trust")
@click.argument("names", metavar="NAME...", nargs=-1)
def trust_command(names: tuple[str, ...]) -> None:
    """Let run folders and model files name code of yours: a network package.module:function, the module of a method.

    Opening such a file imports and calls that code. What you train with is trusted without this command. Without a NAME it
    lists what you trust; to take a name back, delete its line in the file that is shown.
    """
    trust(*names)
    click.echo("\n".join([f"{config_folder() / FILE}:", *sorted(trusted())]))
