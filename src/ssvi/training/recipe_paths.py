"""The paths in a recipe: whole ones in a run folder, so that its data are found from every folder; and data that moved."""

from __future__ import annotations

import os  # its functions take any text for a path; those of pathlib fail on names that are too long
from pathlib import Path

from ssvi.data import NAMES, DataError
from ssvi.training.recipe import Recipe


def with_whole_paths(recipe: Recipe) -> Recipe:
    """The same with paths that are found from every folder; what does not exist stays as it was typed, for the error."""
    own = ("pretrained", *_data_settings(recipe))
    paths = {name: os.path.expanduser(recipe.values[name]) for name in own if recipe.values[name]}
    return recipe.replace(**{name: os.path.abspath(path) for name, path in paths.items() if os.path.exists(path)})


def with_moved_data(recipe: Recipe, data_dir: str | Path | None) -> Recipe:
    """The same; data that are not at their path any more are looked for by their name in `data_dir`."""
    return recipe.replace(**{name: _found(recipe.values[name], data_dir) for name in _data_settings(recipe)})


def _data_settings(recipe: Recipe) -> list[str]:
    """The settings that are paths of data; a data set that has a name is not a path."""
    return [name for name in ("data", "test") if recipe.values[name] and recipe.values[name] not in NAMES]


def _found(path: str, data_dir: str | Path | None) -> str:
    given = os.path.expanduser(path)
    if os.path.exists(given):
        return path
    if data_dir is not None:
        moved = os.path.join(os.path.expanduser(data_dir), os.path.basename(given))
        if os.path.exists(moved):
            return os.path.abspath(moved)
    if os.path.isabs(given):
        raise DataError(f"{path} does not exist: put it back, or name the folder that it is in now with --data-dir")
    return path  # the reader says what is wrong with it
