"""Random cases: a command, what it is given, and the run that it should leave behind."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robustness.fuzz_data import arrays_file, damaged, image_folder, table_file
from robustness.fuzz_settings import SMALL, misspelt, random_settings
from ssvi import methods
from ssvi.training.recipe import fields_of, toml


@dataclass(frozen=True)
class Case:
    """One command in a folder of its own."""

    kind: str
    words: tuple[str, ...]
    trains: Path | None = None
    """The folder in which a new run should appear."""
    original: Path | None = None
    """The intact run of which a damaged copy was made."""


def flags(settings: dict[str, Any]) -> list[str]:
    """Settings as flags of `ssvi train`."""
    words = []
    for name, value in settings.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words.append(f"--{flag}={','.join(value) if isinstance(value, tuple) else value}")
    return words


def of_flags(draw: random.Random, folder: Path, originals: list[Path]) -> Case:
    """`ssvi train digits` with random flags."""
    words = flags(random_settings(draw, bad=draw.random() < 0.6))
    if draw.random() < 0.05:
        words[-1] = misspelt(draw, words[-1])
    return Case("flags", ("train", "digits", *words, "--out", "run"), trains=folder / "run")


def of_a_recipe(draw: random.Random, folder: Path, originals: list[Path]) -> Case:
    """`ssvi train my.toml`: random settings at its top and in tables of methods."""
    settings = random_settings(draw, bad=draw.random() < 0.6)
    lines = [f"{misspelt(draw, k) if draw.random() < 0.01 else k} = {toml(v)}" for k, v in settings.items()]
    for method in draw.sample(methods.NAMES, draw.randint(0, 2)):
        own = draw.sample(sorted(fields_of(method)), 2)
        lines += [f"[{misspelt(draw, method) if draw.random() < 0.1 else method}]"]
        lines += [f"{name} = {toml(SMALL.get(name, draw.choice((0.5, 1, 'foo', True))))}" for name in own]
    content = "\n".join(lines).encode()
    (folder / "my.toml").write_bytes(damaged(draw, content) if draw.random() < 0.1 else content)
    return Case("recipe", ("train", "my.toml", "--out", "run"), trains=folder / "run")


def of_data(draw: random.Random, folder: Path, originals: list[Path]) -> Case:
    """`ssvi train` on a random file or folder of data."""
    make = draw.choice((arrays_file, arrays_file, table_file, table_file, image_folder))
    file = make(draw, folder)
    small = {key: SMALL[key] for key in ("epochs", "batch_size", "threads", "samples", "validation")}
    asked = flags(small | draw.choice(({}, {}, {"target": "y"}, {"test_share": 0.2}, {"size": "8"}, {"width": 2})))
    if file.suffix in (".csv", ".parquet"):
        asked.append("--target=y")
    return Case("data", ("train", file.name, *asked, "--out", "run"), trains=folder / "run")


def of_a_damaged_run(draw: random.Random, folder: Path, originals: list[Path]) -> Case:
    """A command on a run folder in which one file is damaged, gone, or something else."""
    original = draw.choice(originals)
    shutil.copytree(original, folder / "run")
    command = draw.choice(("evaluate", "report", "inspect", "predict", "train", "train"))
    if command == "train":  # as after a kill in the last epoch
        unfinished(folder / "run")
    file = draw.choice(sorted(p for p in (folder / "run").rglob("*") if p.is_file()))
    how = draw.random()
    if how < 0.8:
        file.write_bytes(damaged(draw, file.read_bytes()))
    else:
        file.unlink()
        if how > 0.9:
            file.mkdir()
    extra = {"train": ("--resume", "run"), "predict": ("run", str(original.parent / "digit.png"))}.get(
        command, ("run",)
    )
    kind = f"damage {file.relative_to(folder / 'run')}"
    return Case(kind, (command, *extra, *(() if command in ("report", "inspect") else ("--json",))), original=original)


def unfinished(run: Path) -> None:
    """Take a finished run back to the checkpoint before its last."""
    for name in ("model.safetensors", "result.json"):
        (run / name).unlink(missing_ok=True)
    for file in run.glob("*.json"):
        if file.name not in ("machine.json", "table.json"):
            file.unlink()
    newest = sorted((run / "checkpoints").iterdir())[-1]
    newest.unlink()


KINDS: tuple[Callable[[random.Random, Path, list[Path]], Case], ...] = (
    of_flags,
    of_a_recipe,
    of_data,
    of_a_damaged_run,
)


def case(seed: int, number: int, folder: Path, originals: list[Path]) -> Case:
    """The case of this number; makes its folder and its files."""
    draw = random.Random(f"{seed}-{number}")
    folder.mkdir(parents=True)
    return KINDS[number % len(KINDS)](draw, folder, originals)
