"""recipe.toml of a run folder: sealed, and compared with the recipe that the checkpoints and the model file hold.

So a recipe that was changed behind the back of the run is refused, and the settings that differ are named.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ssvi.training.checkpoint_files import newest_checkpoint
from ssvi.training.errors import RunError, RunFolderWarning
from ssvi.training.model_file import read as read_model
from ssvi.training.model_header import ModelFileError
from ssvi.training.recipe import Recipe, RecipeError, from_mapping
from ssvi.training.recipe_files import code_in_text, parse
from ssvi.training.run_files import TEXTS
from ssvi.training.sealed import EMPTY, Seal, write_whole
from ssvi.training.trusted_code import check_trusted, code_in

FILE = "recipe.toml"
SEAL = Seal(f"# ssvi recipe, format {TEXTS[-1]}, sha256 ".encode())


def write_recipe(folder: Path, recipe: Recipe) -> None:
    """Write recipe.toml, whole or not at all; its first line is the seal."""
    write_whole(folder / FILE, SEAL.put(SEAL.start + f"{EMPTY}\n{recipe.to_toml()}".encode()))


def read_recipe(folder: Path) -> Recipe:
    """The recipe of a run; an error if the file was changed after it was written."""
    content = _content(folder)
    if not SEAL.holds(content):
        return _unchanged(folder, _of_file(folder, content))
    if SEAL.is_on(content) and not content.startswith(SEAL.start):
        raise RunError(f"{folder / FILE} is of another version of ssvi: use the ssvi that wrote it")
    return _of_file(folder, content)


def refuse_changes(folder: Path, recipe: Recipe, checkpoint: dict[str, Any]) -> None:
    """An error if the run was trained with another recipe than that of its folder, up to this checkpoint.

    The number of epochs may differ in a file whose seal holds: `ssvi train --resume --epochs` has written it.
    """
    trained = recipe_of_checkpoint(checkpoint)
    if trained is None:  # of an earlier version
        return
    changed = differences(trained, recipe)
    if set(changed) == {"epochs"} and SEAL.is_on(_content(folder)):
        return
    if changed:
        raise _changed(folder, changed)


def recipe_of_checkpoint(checkpoint: dict[str, Any]) -> Recipe | None:
    """The recipe that it was trained with; None in a checkpoint of an earlier version."""
    return _parsed(checkpoint["recipe"], "the checkpoint") if "recipe" in checkpoint else None


def differences(old: Recipe, new: Recipe) -> dict[str, tuple[object, object]]:
    """The settings in which two recipes differ, with the old value and the new one; None where one has no such setting."""
    before, after = old.values, new.values
    pairs = {name: (before.get(name), after.get(name)) for name in [*after, *(before.keys() - after)]}
    return {name: (one, other) for name, (one, other) in pairs.items() if one != other}


def require_run(folder: Path) -> None:
    """An error if the folder is not that of a run."""
    if not (folder / FILE).is_file():
        raise RunError(f"{folder} is not a run folder: it has no {FILE}. Name a folder of `ssvi train`")


def _content(folder: Path) -> bytes:
    require_run(folder)
    try:
        return (folder / FILE).read_bytes()
    except OSError as error:
        raise RunError(f"{folder / FILE} cannot be read: {error}") from error


def _parsed(text: str, where: str) -> Recipe:
    """A recipe that may be a stranger's: it names no code that the user does not trust."""
    check_trusted(where, code_in_text(text, where))
    return parse(text, where)


def _of_file(folder: Path, content: bytes) -> Recipe:
    try:
        return _parsed(content.decode(), str(folder / FILE))
    except (RecipeError, UnicodeDecodeError) as error:
        raise RunError(f"{folder}: {FILE} is damaged or of another version of ssvi: {error}") from error


def _unchanged(folder: Path, recipe: Recipe) -> Recipe:
    """The recipe of a file whose seal is broken, if all its settings are those that the run was trained with."""
    trained = _trained_with(folder)
    if trained is None:
        raise RunError(
            f"{folder / FILE} is damaged or was changed: its SHA-256 does not match. Put back the file, or start anew in "
            "another folder"
        )
    if changed := differences(trained, recipe):
        raise _changed(folder, changed)
    warnings.warn(
        f"{folder / FILE} was changed after it was written, but its settings are still those of the run",
        RunFolderWarning,
        stacklevel=2,
    )
    return trained


def _trained_with(folder: Path) -> Recipe | None:
    """The recipe in the newest intact checkpoint, or else in the model file; None if there is none."""
    state = newest_checkpoint(folder)[0]
    if state is not None and (recipe := recipe_of_checkpoint(state)) is not None:
        return recipe
    try:
        values = read_model(folder / "model.safetensors")[0].recipe
        check_trusted(folder / "model.safetensors", code_in(values or {}))
        return None if values is None else from_mapping(values)
    except (ModelFileError, RecipeError):
        return None


def _changed(folder: Path, changed: dict[str, tuple[object, object]]) -> RunError:
    settings = ", ".join(f"{name} = {old!r} -> {new!r}" for name, (old, new) in changed.items())
    return RunError(
        f"{folder / FILE} was changed after the run began: {settings}. Put back the old values. To train longer, call "
        f"`ssvi train --resume {folder} --epochs N`; for other settings, start a run in another folder"
    )
