"""A run folder: everything that made a run's numbers, and from which it goes on after any interruption.

`ssvi.training.run_files` says which files there are. Each is sealed with its SHA-256 (`ssvi.training.sealed`), so that a
damaged one is named and not used. One process writes at a time (`ssvi.training.run_lock`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ssvi.training import checkpoint_files, run_files
from ssvi.training.errors import OccupiedError
from ssvi.training.errors import RunError as RunError
from ssvi.training.iou_log import IoULog
from ssvi.training.machine import Origin, origin
from ssvi.training.progress import EpochLine
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import read_recipe, require_run, write_recipe
from ssvi.training.records import RecordError, from_plain, to_plain
from ssvi.training.run_files import MEMBERS, TEXTS
from ssvi.training.run_lock import RunLock
from ssvi.training.sealed import read_json, sealed_json, write_whole
from ssvi.training.training_log import REMEDY, TrainingLog


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.log = TrainingLog(self.path)
        self.iou_log = IoULog(self.path)

    @cached_property
    def lock(self) -> RunLock:
        """Held by the process that writes."""
        return RunLock(self.path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Around all that a run writes: a full disk, or one that fails, becomes an error that says how to go on."""
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self.path} could not be written ({error}); the last checkpoint is intact: make room, and go on with "
                f"`ssvi train --resume {self.path}`"
            ) from error

    def take_lock(self) -> None:
        """Let no other process write to the folder, which must be that of a run that can go on."""
        require_run(self.path)
        if (self.path / MEMBERS).exists():
            raise RunError(
                f"{self.path} was made by `ssvi ensemble`: train its members, which {MEMBERS} names, instead"
            )
        self.lock.take()

    def refuse_a_second_run(self) -> None:
        """An error if the folder holds a run already."""
        if (self.path / "recipe.toml").exists():
            raise OccupiedError(
                f"{self.path} holds a run already: go on with `ssvi train --resume {self.path}`, "
                "or choose another folder with --out"
            )

    def create(self, recipe: Recipe, processes: int = 1) -> None:
        """Make the folder of a new run; from now on this process alone may write to it."""
        self.refuse_a_second_run()
        try:
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
            self.lock.take()
            self.refuse_a_second_run()  # another process may have been faster
            self.write_text("machine.json", to_plain(origin(processes)))
            write_recipe(self.path, recipe)
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error}. Choose another folder with --out") from error

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe of the run."""
        return read_recipe(self.path)

    @property
    def origin(self) -> Origin:
        """Where it was started, and with how many processes."""
        file = self.path / "machine.json"
        try:
            return from_plain(Origin, read_json(file, TEXTS))
        except RecordError as error:
            raise RunError(f"{file} is damaged: it is {error}") from error

    @property
    def finished(self) -> bool:
        """Whether the trained network is there."""
        return (self.path / "model.safetensors").is_file()

    @property
    def result(self) -> dict[str, Any]:
        """Its numbers on the test set; where there are no examples for testing, the reason."""
        values = read_json(self.path / "result.json", TEXTS)
        return {name: value for name, value in values.items() if name != "format"}

    def take_recipe(self, recipe: Recipe) -> None:
        """Go on with a recipe of another number of epochs.

        What is about the network trained so far goes first, for it would not be that of the recipe. A kill in between
        leaves an unfinished run of the old recipe, which ends with the same network again.
        """
        run_files.remove_trained_network(self.path)
        write_recipe(self.path, recipe)

    def save_checkpoint(self, step: int, state: dict[str, Any]) -> Path:
        """Write a training state; then, and only then, forget all but the newest two."""
        return checkpoint_files.save_checkpoint(self.path, step, state)

    def checkpoints(self) -> list[Path]:
        """From the oldest to the newest."""
        return checkpoint_files.checkpoints(self.path)

    def load_checkpoint(self) -> tuple[dict[str, Any], list[str]]:
        """The newest intact training state, and what was wrong with newer ones."""
        state, damaged = checkpoint_files.newest_checkpoint(self.path)
        if state is None:
            raise RunError("\n".join([*damaged, f"{self.path} has no intact checkpoint: start anew in another folder"]))
        return state, damaged

    def metrics(self) -> list[EpochLine]:
        """The epochs so far; none if the log does not reach back to the first one, because it was deleted on the way."""
        lines = self.log.read()
        if not lines or lines[0].epoch > 0:
            return []
        if self.finished and len(lines) != (epochs := self.recipe.all_epochs):
            raise RunError(f"{self.log.file} is damaged: it has {len(lines)} of {epochs} epochs; {REMEDY}")
        return lines

    def write_text(self, name: str, values: dict[str, Any]) -> None:
        """Write machine.json, table.json or result.json."""
        self.write_json(name, {"format": TEXTS[-1]} | values)

    def write_json(self, name: str, values: dict[str, Any]) -> None:
        """Write one of the folder's JSON files, with its seal."""
        write_whole(self.path / name, sealed_json(values))
