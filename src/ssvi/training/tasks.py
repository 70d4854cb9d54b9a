"""What a run trains on and what for: its data, what the outputs of the network mean, and the network for both.

The loop knows a `Task` and nothing else of images or tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from ssvi.data import Batches, DataSet, TrainingData
from ssvi.data.tables import Preprocessing, TableData, describe
from ssvi.inference.evaluate import Evaluation, NumberEvaluation, evaluate
from ssvi.likelihoods import Categorical, Likelihood
from ssvi.nn.models import image_size
from ssvi.training import model_file
from ssvi.training.likelihood_names import likelihood_of
from ssvi.training.model_header import ModelAbout
from ssvi.training.networks import network_for_images, network_for_rows
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_paths import with_moved_data
from ssvi.training.records import RecordError, from_plain, to_plain
from ssvi.training.run_files import TEXTS
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.sealed import read_json

FILE = "table.json"
"""What was learnt of the columns, in the run folder."""


class Task(ABC):
    """Data, likelihood and network."""

    @property
    @abstractmethod
    def data(self) -> TrainingData:
        """What is trained on."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """What the outputs of the network mean."""

    @abstractmethod
    def network(self) -> nn.Module:
        """A plain network with new random weights."""

    @abstractmethod
    def evaluate(self, net: nn.Module, batches: Batches, samples: int) -> Evaluation | NumberEvaluation:
        """Quality of the predictions for these examples; of numbers in the units of the target."""

    @abstractmethod
    def save(self, net: nn.Module, path: Path) -> None:
        """Write the model file, with all that one must know of the data to use the network."""

    @abstractmethod
    def lines(self) -> list[str]:
        """What a user should know of the data before training."""

    @abstractmethod
    def keep(self, folder: RunFolder) -> None:
        """Write to the folder of a new run what must still hold when it goes on."""

    @abstractmethod
    def check(self, folder: RunFolder) -> None:
        """Refuse to go on with other data than those of the beginning."""


@dataclass(frozen=True)
class ImageTask(Task):
    """A class for each image."""

    recipe: Recipe
    images: DataSet

    @property
    def data(self) -> DataSet:
        """The images."""
        return self.images

    @property
    def likelihood(self) -> Likelihood:
        """One class of several."""
        return Categorical(len(self.images.classes))

    def network(self) -> nn.Module:
        """For images of this shape."""
        return network_for_images(self.recipe.values, len(self.images.classes), self._shape)

    def evaluate(self, net: nn.Module, batches: Batches, samples: int) -> Evaluation:
        """Accuracy, NLL, calibration."""
        return evaluate(net, batches, samples)

    def save(self, net: nn.Module, path: Path) -> None:
        """With the classes, and the shape and the statistics of the images."""
        channels, height, width = self._shape
        images, size = self.images, image_size(height, width)
        about = ModelAbout(list(images.classes), channels, size, list(images.mean), list(images.std), self.recipe.fit)
        model_file.save(net, path, recipe=self.recipe.values, about=about)

    def lines(self) -> list[str]:
        """Whether the data have images for validation of their own."""
        if self.images.validation is None:
            return []
        count, share = len(self.images.validation), self.recipe.validation
        return [f"validation: the {count} images that {self.recipe.data} has for it; validation={share} is not used"]

    def keep(self, folder: RunFolder) -> None:
        """Nothing."""

    def check(self, folder: RunFolder) -> None:
        """Everything goes: data sets have names."""

    @property
    def _shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self.images.train.x.shape
        return channels, height, width


@dataclass(frozen=True)
class TableTask(Task):
    """A number or a class for each row of a table."""

    recipe: Recipe
    table: TableData

    @property
    def data(self) -> TableData:
        """The rows."""
        return self.table

    @property
    def likelihood(self) -> Likelihood:
        """That of the recipe."""
        return likelihood_of(self.recipe.likelihood, len(self.table.classes))

    def network(self) -> nn.Module:
        """For rows of so many numbers."""
        return network_for_rows(self.recipe.values, self.table.learnt)

    def evaluate(self, net: nn.Module, batches: Batches, samples: int) -> Evaluation | NumberEvaluation:
        """As for images if the target is a class; else RMSE, NLL and intervals."""
        target = self.table.learnt.target
        if not target.is_number:
            return evaluate(net, batches, samples)
        return evaluate(net, batches, samples, likelihood=self.likelihood, scale=target.std, shift=target.mean)

    def save(self, net: nn.Module, path: Path) -> None:
        """With what was learnt of the columns."""
        model_file.save(net, path, recipe=self.recipe.values, table=self.table.learnt)

    def lines(self) -> list[str]:
        """What was done with each column."""
        return [*describe(self.table.learnt), *self.table.notes]

    def keep(self, folder: RunFolder) -> None:
        """What was learnt of the columns, as table.json."""
        folder.write_text(FILE, to_plain(self.table.learnt))

    def check(self, folder: RunFolder) -> None:
        """The table must still give what was learnt of it: else weights would meet other means and other rows."""
        file = folder.path / FILE
        if file.is_file() and _learnt(file) != self.table.learnt:
            raise RunError(f"{self.recipe.data} has changed since {folder.path} was begun: give it back, or start anew")


def _learnt(file: Path) -> Preprocessing:
    try:
        return from_plain(Preprocessing, read_json(file, TEXTS))
    except RecordError as error:
        raise RunError(f"{file} is damaged: it is {error}") from error


def task_of(recipe: Recipe, data_dir: str | Path | None = None) -> Task:
    """The task of a recipe; reads its data."""
    found = with_moved_data(recipe, data_dir)
    if recipe.is_table:
        return TableTask(recipe, found.load_table())
    return ImageTask(recipe, found.load_data(data_dir))
