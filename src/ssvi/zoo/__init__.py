"""Networks that come with the package, trained and evaluated: `ssvi.zoo.load("digits")` predicts at once, offline.

Each is a finished run without its checkpoints: network, recipe, evaluation, threshold, and the report as README.md. The
network NAME was trained by `ssvi train NAME`. `SHA256SUMS` has the checksum of every file, in the form of `sha256sum`.
`experiments/zoo.py` adds networks.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from ssvi.errors import UserError
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.loaded_run import LoadedRun
from ssvi.evaluation.results import RunEvaluation
from ssvi.training.device import device_of

__all__ = ["Entry", "ZooError", "about", "copy", "load", "names"]

FOLDER = Path(__file__).parent
SUMS = "SHA256SUMS"
MODEL = "model.safetensors"


class ZooError(UserError, ValueError):
    """There is no such network, or one of its files is not as it was packed."""


@dataclass(frozen=True)
class Entry:
    """What is known of a network of the zoo: from its recipe, its evaluation.json and `SHA256SUMS`."""

    name: str
    """That of the recipe too: `ssvi train NAME` trains such a network again."""
    data: str
    method: str
    density: float
    live_weights: float
    accuracy: float
    nll: float
    ece: float
    bytes: int
    """Of the model file."""
    sha256: str
    """Of the model file."""


def names() -> list[str]:
    """The networks that come with the package."""
    return sorted({Path(file).parent.name for file in checksums()})


def load(name: str, *, device: str = "cpu") -> LoadedRun:
    """The network of this name, ready to predict images of any size: `load("digits").predict("image.png")`."""
    run = FinishedRun(_verified(name))
    run.net.to(device_of(device))
    return LoadedRun(run)


def about(name: str) -> Entry:
    """Data, method, density and quality of the network of this name, without guessing: what its files say."""
    run = FinishedRun(_verified(name))
    evaluation = run.read(RunEvaluation, "evaluation.json")
    if evaluation is None:
        raise ZooError(f"the evaluation of {name!r} belongs to another network: install ssvi again")
    quality = {metric: evaluation.metrics[metric].value for metric in ("accuracy", "nll", "ece")}
    return Entry(
        name, run.recipe.data, run.recipe.method, run.recipe.values.get("density", 1.0), evaluation.cost.live_weights,
        **quality, bytes=run.model_bytes, sha256=checksums()[f"{name}/{MODEL}"],
    )  # fmt: skip


def copy(name: str, folder: str | Path) -> Path:
    """Copy a network to a new folder: a finished run, for every command that takes one."""
    target = Path(folder)
    if target.exists():
        raise ZooError(f"{target} exists already: give the name of a new folder")
    shutil.copytree(_verified(name), target)
    return target


def checksums() -> dict[str, str]:
    """The SHA-256 of every file of the networks, by its path inside the folder."""
    lines = (FOLDER / SUMS).read_text().splitlines()
    return {file: digits for digits, file in (line.split("  ", 1) for line in lines)}


def checksum(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _verified(name: str) -> Path:
    """The folder of a network, each of whose files is as it was packed."""
    if name not in names():
        raise ZooError(f"the zoo has no network {name!r}: take one of {', '.join(names())}")
    for file, digits in checksums().items():
        if Path(file).parent.name == name and (not (FOLDER / file).is_file() or checksum(FOLDER / file) != digits):
            raise ZooError(f"{FOLDER / file} is not the file that was packed: install ssvi again")
    return FOLDER / name
