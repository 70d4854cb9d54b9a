"""The numbers of a run where people look: TensorBoard, MLflow, Weights & Biases.

A tracker of any kind is two functions. It gets the recipe and tags when it begins, the numbers of each epoch, and at the end
those on the test set. What it cannot do never stops a training: one line says so, and then it is left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ssvi
from ssvi.training.progress import EpochLine
from ssvi.training.records import to_plain
from ssvi.training.run_files import TEXTS, TRACKING
from ssvi.training.run_folder import RunFolder
from ssvi.training.sealed import read_json

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Tracker:
    """Where the numbers of a run go."""

    log: Callable[[Numbers, int], None]
    """Takes the numbers of an epoch, and the step at its end."""
    end: Callable[[Numbers | None], None]
    """Takes the numbers on the test set; None if the run has not reached its end."""


Begin = Callable[[RunFolder], Tracker]
"""Begins to track a run, or goes on with it where the folder knows it already."""


class Trackers:
    """Some trackers of one run. `warn` gets the line about one that fails; nothing is raised."""

    def __init__(self, folder: RunFolder, begin: Mapping[str, Begin], warn: Callable[[str], None]) -> None:
        self._trackers: dict[str, Tracker] = {}
        self._warn = warn
        for name, begin_one in begin.items():
            with self._guarded(name):
                self._trackers[name] = begin_one(folder)

    def epoch(self, line: EpochLine) -> None:
        """One point on each curve."""
        numbers = numbers_of(line)
        for name, tracker in list(self._trackers.items()):
            with self._guarded(name):
                tracker.log(numbers, line.step)

    def end(self, result: Mapping[str, Any] | None) -> None:
        """The numbers of result.json; None if the run has not reached its end. Nothing follows."""
        numbers = None if result is None else {f"test/{key}": v for key, v in result.items() if _is_number(v)}
        for name, tracker in list(self._trackers.items()):
            with self._guarded(name):
                tracker.end(numbers)
        self._trackers.clear()

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        """Inside, an error ends the tracker and not the training; warnings of its package are not for the user."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except Exception as error:
            self._trackers.pop(name, None)
            said = " ".join(str(error).split())[:200]
            self._warn(f"{name} gets no more numbers, the training goes on without it ({type(error).__name__}: {said})")


def numbers_of(line: EpochLine) -> dict[str, float]:
    """The numbers of an epoch by name, such as loss and validation/nll; what was not computed is left out."""
    numbers: dict[str, float] = {}
    for name, value in to_plain(line).items():
        values = (
            {f"{name}/{key}": number for key, number in value.items()} if isinstance(value, dict) else {name: value}
        )
        numbers |= {key: number for key, number in values.items() if _is_number(number)}
    return {name: number for name, number in numbers.items() if name not in ("epoch", "step")}


def tags_of(folder: RunFolder) -> dict[str, str]:
    """What a run is found by: the version, the method, the data and the network."""
    recipe = folder.recipe
    return {"ssvi": ssvi.__version__, "method": recipe.method, "data": recipe.data, "model": recipe.model}


def known_id(folder: RunFolder, name: str) -> str | None:
    """Under which name a tracker knows the run already; None if it does not."""
    found = _ids(folder).get(name)
    return found if isinstance(found, str) else None


def keep_id(folder: RunFolder, name: str, value: str) -> None:
    """Note it in the run folder, so that a resumed run goes on in the same place."""
    folder.write_text(TRACKING, _ids(folder) | {name: value})


def _ids(folder: RunFolder) -> dict[str, Any]:
    file = folder.path / TRACKING
    return read_json(file, TEXTS) if file.is_file() else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
