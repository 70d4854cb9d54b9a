"""A run folder: everything that made a run's numbers, and from which it goes on after any interruption.

    recipe.toml         the resolved recipe
    machine.json        versions, machine, number of processes
    table.json          of a run on a table: what was learnt of its columns
    metrics.jsonl       a line per epoch
    checkpoints/        the newest two training states, each sealed with its SHA-256
    states/             the networks that an ensemble or a sampler keeps
    model.safetensors   the trained network, at the end
    result.json         its numbers on the test set, at the end

Files are written under another name and renamed, so that a kill at any moment leaves the old file or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import IO, Any

import torch

from ssvi.errors import UserError
from ssvi.training.machine import Origin, origin
from ssvi.training.progress import EpochLine, epoch_line
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.recipe_files import code_in_file, read
from ssvi.training.records import dumps, from_plain, to_plain
from ssvi.training.trusted_code import check_trusted

FORMAT = 1
"""The format of a checkpoint; raised when an older reader could not read it."""

KEPT = 2
"""How many checkpoints are kept: if the newest is damaged, there is one before it."""

_SEAL = hashlib.sha256().digest_size


class RunError(UserError, RuntimeError):
    """A run folder that cannot be used as asked: says what is wrong and what to do."""


class RunFolder:
    """Reads and writes one run folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def refuse_a_second_run(self) -> None:
        """An error if the folder holds a run already."""
        if (self.path / "recipe.toml").exists():
            raise RunError(
                f"{self.path} holds a run already: go on with `ssvi train --resume {self.path}`, "
                "or choose another folder with --out"
            )

    def create(self, recipe: Recipe, processes: int = 1) -> None:
        """Make the folder of a new run."""
        self.refuse_a_second_run()
        try:
            (self.path / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._write("machine.json", dumps(origin(processes)).encode())
            self._write("recipe.toml", recipe.to_toml().encode())
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error}. Choose another folder with --out") from error

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe of the run."""
        file = self.path / "recipe.toml"
        if not file.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no recipe.toml. Name a folder of `ssvi train`")
        try:
            check_trusted(self.path, code_in_file(file))
            return read(file)
        except RecipeError as error:
            raise RunError(f"{self.path}: recipe.toml is damaged or of another version of ssvi: {error}") from error

    @property
    def origin(self) -> Origin:
        """Where it was started, and with how many processes."""
        file = self.path / "machine.json"
        try:
            return from_plain(Origin, json.loads(file.read_text()))
        except (OSError, ValueError) as error:
            raise RunError(f"{file} cannot be read: {error}") from error

    @property
    def finished(self) -> bool:
        """Whether the trained network is there."""
        return (self.path / "model.safetensors").is_file()

    def save_checkpoint(self, step: int, state: dict[str, Any]) -> Path:
        """Write a training state; then, and only then, forget all but the newest two."""
        buffer = io.BytesIO()
        torch.save({"format": FORMAT, **state}, buffer)
        content = buffer.getvalue()
        path = self._write(f"checkpoints/step-{step:09d}.pt", content + hashlib.sha256(content).digest())
        for old in self.checkpoints()[:-KEPT]:
            old.unlink(missing_ok=True)
        return path

    def checkpoints(self) -> list[Path]:
        """From the oldest to the newest."""
        return sorted((self.path / "checkpoints").glob("step-*.pt"))

    def load_checkpoint(self) -> tuple[dict[str, Any], list[str]]:
        """The newest intact training state, and what was wrong with newer ones."""
        damaged: list[str] = []
        for path in reversed(self.checkpoints()):
            try:
                return read_checkpoint(path), damaged
            except RunError as error:
                damaged.append(str(error))
        raise RunError("\n".join([*damaged, f"{self.path} has no intact checkpoint: start anew in another folder"]))

    def log(self, line: EpochLine) -> None:
        """Append an epoch to the metrics."""
        with open(self.path / "metrics.jsonl", "ab") as file:
            file.write(_json_line(line))
            _to_disk(file)

    def metrics(self) -> list[EpochLine]:
        """The epochs so far; a line that a kill cut short is not one."""
        file = self.path / "metrics.jsonl"
        lines = []
        for text in file.read_text(errors="replace").splitlines() if file.exists() else []:
            try:
                lines.append(epoch_line(json.loads(text)))
            except ValueError:
                break
        return lines

    def forget_epochs_from(self, epoch: int) -> None:
        """Drop the lines of epochs that the checkpoint has not seen: they will be trained again."""
        self._write("metrics.jsonl", b"".join(_json_line(line) for line in self.metrics() if line.epoch < epoch))

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """Write one of the folder's JSON files."""
        self._write(name, json.dumps(value, indent=1).encode())

    def _write(self, name: str, content: bytes) -> Path:
        target = self.path / name
        write_whole(target, content)
        return target


def write_whole(target: Path, content: bytes) -> None:
    """Write a file under another name, then rename it: a kill at any moment leaves the old file or the new one."""
    part = target.with_name(target.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        _to_disk(file)
    os.replace(part, target)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A training state whose seal and format are right."""
    content = path.read_bytes()
    if len(content) <= _SEAL or hashlib.sha256(content[:-_SEAL]).digest() != content[-_SEAL:]:
        raise RunError(f"{path} is damaged or cut short (its SHA-256 does not match)")
    state: dict[str, Any] = torch.load(io.BytesIO(content[:-_SEAL]), weights_only=True)
    if state.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {state.get('format')}, this version reads {FORMAT}: use the ssvi that wrote it"
        )
    return state


def _json_line(line: EpochLine) -> bytes:
    return json.dumps(to_plain(line)).encode() + b"\n"


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
