"""A finished run: its network, its data, and the results in its folder."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from ssvi.data import Batches, DataError, DataSet, Split
from ssvi.inference.evaluate import Outputs, collect
from ssvi.training import model_file
from ssvi.training.errors import RunFolderWarning
from ssvi.training.model_header import ModelAbout, ModelFileError
from ssvi.training.recipe_paths import with_moved_data
from ssvi.training.records import RecordError, from_plain, without_defaults
from ssvi.training.run_files import RESULTS
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.sealed import read_json

T = TypeVar("T")

BATCH = 250
"""Images that pass through the network at once."""


class Track(Protocol):
    """Passes the items of a loop on, and may show how many of them are done; `what` names the loop."""

    def __call__(self, items: Iterable[T], what: str) -> Iterable[T]:
        """Return the same items in the same order."""


def quiet(items: Iterable[T], what: str) -> Iterable[T]:
    """The `Track` that shows nothing: the default in Python. The command line passes a progress bar."""
    return items


class FinishedRun:
    """One finished run.

    Images of every data set are normalised with the statistics of the training set, which the model file carries.
    """

    def __init__(self, path: str | Path, data_dir: str | Path | None = None) -> None:
        self.folder, self.data_dir = RunFolder(path), data_dir
        self.recipe = self.folder.recipe
        file = model_file.file_of(self.folder.path)
        header = model_file.read(file)[0]
        self._about = header.about
        self.table = header.table
        """What was learnt of the columns of a table; None where the network sees images."""
        self.model_bytes = file.stat().st_size
        self.fingerprint = hashlib.sha256(file.read_bytes()).hexdigest()[:16]

    @cached_property
    def net(self) -> nn.Module:
        """The trained network. It is built at the first look: to read kept results, nobody needs it."""
        return model_file.load(self.folder.path)

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self.folder.path.resolve().name

    @cached_property
    def about(self) -> ModelAbout:
        """What is known of the images; an error where the network sees none."""
        if self.table is not None:
            raise RunError(f"{self.folder.path} was trained on a table, but this needs a run on images")
        if self._about is None:
            raise ModelFileError(
                f"{self.folder.path} does not say which images its network sees: train it with `ssvi train`"
            )
        return self._about

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one image, or of one row of a table, as the network sees it."""
        return self.about.shape if self.table is None else (self.table.features,)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, in the order of the network's outputs; none where a number is predicted."""
        return self.about.classes if self.table is None else list(self.table.target.classes)

    @cached_property
    def data(self) -> DataSet:
        """The data set that the recipe names; an error if it is not the one that the network was trained on."""
        recipe = with_moved_data(self.recipe, self.data_dir)
        classes, data = self.about.classes, recipe.load_data(self.data_dir)
        if list(data.classes) != classes:
            raise DataError(
                f"{self.recipe.data} has the classes {_some(data.classes)}, but {self.folder.path} was trained on "
                f"{_some(classes)}: give back the data set of the training"
            )
        self.check_images(data.test.x if len(data.test) else data.train.x, self.recipe.data)
        return data

    @property
    def test(self) -> Split:
        """The test images of the data set."""
        if not len(self.data.test):
            raise DataError(f"{self.recipe.data} has no test images, so there is nothing to evaluate on")
        return self.data.test

    @property
    def validation(self) -> Split:
        """The validation images: those of the data set, or training images that were held out; there may be none."""
        return self.data.split_validation(self.recipe.validation, self.recipe.seed)[1]

    def check_images(self, x: Tensor, name: str) -> None:
        """Raise a DataError unless the images have the shape that the network was trained on."""
        if tuple(x.shape[1:]) != self.about.shape:
            shape, expected = (" x ".join(map(str, each)) for each in (x.shape[1:], self.about.shape))
            raise DataError(
                f"{name} has images of {shape}, but the network of {self.folder.path} sees {expected} "
                "(channels x height x width): give back the data set of the training"
            )

    def normalise(self, x: Tensor) -> Tensor:
        """(x / 255 - mean) / std, with the statistics of the training set."""
        mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (self.about.mean, self.about.std))
        return (x.float() / 255 - mean) / std

    def batches(self, split: Split) -> Batches:
        """Normalised batches, in the order of the images."""
        return Batches(split, BATCH, normalise=self.normalise, shuffle=False)

    def outputs(self, split: Split, samples: int, seed: int, what: str, track: Track = quiet) -> Outputs:
        """The probabilities that the network gives these images, under each sample of theta; `what` names the bar."""
        return collect(self.net, track(self.batches(split), what), samples, seed)

    def write(self, name: str, record: Any) -> None:
        """Write a result to the run folder, marked with the model that it belongs to; a warning where that is not possible.

        So the runs in a folder that is read-only, or on a full disk, can be evaluated all the same.
        """
        try:
            with self.folder.lock.hold():
                self.folder.write_json(name, without_defaults(record) | self._mark)
        except (OSError, RunError) as error:
            self._warn(
                f"{self.folder.path / name} is not stored: {error}. To keep the result, copy the run folder to a "
                "place that you can write to, or take --json and store what is printed"
            )

    def read(self, kind: type[T], name: str, fits: Callable[[T], bool] | None = None) -> T | None:
        """The result of this model in the file `name`, a record of the class `kind`; None if there is none that fits.

        A file that is damaged, or not such a record, counts as absent, with a warning: the result is computed again.
        """
        file = self.folder.path / name
        if not file.is_file():
            return None
        try:
            values = read_json(file)
            if not values.items() >= self._mark.items():  # of another model, or of another version
                return None
            record = from_plain(kind, values)
        except RunError as error:
            self._warn(f"{error}, so it is not used")
            return None
        except RecordError as error:
            self._warn(f"{file} is damaged: it is {error}, so it is not used")
            return None
        return record if fits is None or fits(record) else None

    def read_all(self, kind: type[T], pattern: str) -> list[T]:
        """All results of this model in files whose names match the pattern, in the order of the names."""
        records = (self.read(kind, file.name) for file in sorted(self.folder.path.glob(pattern)))
        return [record for record in records if record is not None]

    def _warn(self, text: str) -> None:
        warnings.warn(text, RunFolderWarning, stacklevel=3)

    @property
    def _mark(self) -> dict[str, Any]:
        return {"model": self.fingerprint, "format": RESULTS[-1]}


def _some(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names)})" if len(names) > 5 else "")
