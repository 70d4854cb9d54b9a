"""`ssvi recipes`: what can be trained without writing a file."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.console import RenderableType

from ssvi.cli.tables import json_option, show, two_columns
from ssvi.data import NAMES
from ssvi.training import recipe_files


@click.command("recipes")
@json_option
def recipes_command(as_json: bool) -> None:
    """List the recipes that come with the package, and the data sets it knows."""
    recipes = recipe_files.names()
    show({"recipes": recipes, "data": NAMES}, as_json, lambda: _page(recipes))


def _page(recipes: dict[str, str]) -> Iterator[RenderableType]:
    yield two_columns("Recipes", recipes)
    yield f"data sets: {', '.join(NAMES)}, a .npz file, a folder of class folders"
    yield "Every field of a recipe is a flag: ssvi train cifar10 --density 0.1 --epochs 50"
