"""A finished run, opened: its network, its data, and the results that its folder keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssvi.data import Batches, DataError, DataSet, Split, load
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.outputs import Outputs, collect
from ssvi.training import model_file as saving
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run_folder import RunError, RunFolder

BATCH = 250

FORMAT = 2
"""Of the results that a run folder keeps; raised when their keys change, so that old ones are computed again."""


class FinishedRun:
    """One finished run.

    Images of every data set are normalised with the statistics of the training set, which the model file carries.
    """

    def __init__(self, path: str | Path, data_dir: str | Path | None = None) -> None:
        self.folder, self.data_dir = RunFolder(path), data_dir
        self.recipe = _recipe(self.folder)
        self.net = saving.load(self.folder.path)
        file = self.folder.path / "model.safetensors"
        self.about: dict[str, Any] = saving.read(file)[0]["about"]
        self.model_bytes = file.stat().st_size
        self.fingerprint = hashlib.sha256(file.read_bytes()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.path.resolve().name

    @property
    def classes(self) -> list[str]:
        """What the network tells apart."""
        return self.about["classes"]

    @cached_property
    def data(self) -> DataSet:
        """The data set of its recipe; one that is not what the network was trained on is an error."""
        data = load(self.recipe.data, self.data_dir)
        if list(data.classes) != self.classes:
            raise DataError(
                f"{self.recipe.data} has the classes {_some(data.classes)}, but {self.folder.path} was trained on "
                f"{_some(self.classes)}: give back the data set of the training"
            )
        self.check_images(data.test.x if len(data.test) else data.train.x, self.recipe.data)
        return data

    @property
    def test(self) -> Split:
        """Its test images."""
        if not len(self.data.test):
            raise DataError(f"{self.recipe.data} has no test images, so there is nothing to evaluate on")
        return self.data.test

    @property
    def validation(self) -> Split:
        """The part of the training images that was kept from training; it may be empty."""
        recipe = self.recipe
        return (
            self.data.split_validation(recipe.validation, recipe.seed)[1] if recipe.validation else self.data.train[:0]
        )

    def check_images(self, x: Tensor, name: str) -> None:
        """An error unless the network can see such images."""
        channels, size = self.about["channels"], self.about["size"]
        if tuple(x.shape[1:3]) != (channels, size):
            found = " x ".join(map(str, x.shape[1:]))
            raise DataError(
                f"{name} has images of {found}, but the network of {self.folder.path} sees {channels} x {size} x {size} "
                "(channels x height x width): take a data set of that shape, or a folder of images, which are resized"
            )

    def normalise(self, x: Tensor) -> Tensor:
        """(x / 255 - mean) / std, with the statistics of the training set."""
        mean, std = (torch.tensor(self.about[key]).view(-1, 1, 1) for key in ("mean", "std"))
        return (x.float() / 255 - mean) / std

    def batches(self, split: Split) -> Batches:
        """Normalised batches, in order."""
        return Batches(split, BATCH, normalise=self.normalise, shuffle=False)

    def outputs(self, split: Split, samples: int, seed: int, what: str, track: Track = quiet) -> Outputs:
        """What the network says of these images."""
        return collect(self.net, track(self.batches(split), what), samples, seed)

    def write(self, name: str, result: dict[str, Any]) -> None:
        """Keep a result in the run folder, marked with the model that it belongs to."""
        try:
            self.folder.write_json(name, result | self._mark)
        except OSError as error:
            raise RunError(f"{self.folder.path / name} cannot be written: {error}") from error

    def read(self, name: str, fits: Callable[[dict[str, Any]], bool] = lambda result: True) -> dict[str, Any] | None:
        """A kept result of this very model that fits; None if there is none."""
        try:
            result: dict[str, Any] = json.loads((self.folder.path / name).read_text())
        except (OSError, json.JSONDecodeError):
            return None
        return result if result.items() >= self._mark.items() and fits(result) else None

    @property
    def _mark(self) -> dict[str, Any]:
        return {"model": self.fingerprint, "format": FORMAT}

    def read_all(self, pattern: str) -> list[dict[str, Any]]:
        """All kept results of this very model whose names fit the pattern."""
        found = (self.read(file.name) for file in sorted(self.folder.path.glob(pattern)))
        return [result for result in found if result is not None]


def _recipe(folder: RunFolder) -> Recipe:
    try:
        return folder.recipe
    except RecipeError as error:
        raise RunError(f"{folder.path}: recipe.toml is damaged or of another version of ssvi: {error}") from error


def _some(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names)})" if len(names) > 5 else "")
