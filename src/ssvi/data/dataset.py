"""A data set: images and labels for training and for testing, and the statistics that normalise the images."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ssvi.data.augment import Augment
from ssvi.data.split import Batches, DataError, Split


@dataclass(frozen=True)
class DataSet:
    """Images of `classes`, for training and for testing; either split may be empty.

    `validation` are images that were set apart for validation; where there are none, it is a share of the training images.
    `mean` and `std` are those of the training pixels on the scale [0, 1], one number per channel; they are empty if
    there are no training images.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    validation: Split | None = None
    mean: tuple[float, ...] = field(init=False)
    std: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._check()
        moments = [_moments(self.train.x[:, c]) for c in range(self.train.x.shape[1])] if len(self.train) else []
        object.__setattr__(self, "mean", tuple(mean for mean, _ in moments))
        object.__setattr__(self, "std", tuple(std for _, std in moments))

    def _check(self) -> None:
        splits = {"training": self.train, "test": self.test}
        if self.validation is not None:
            splits["validation"] = self.validation
        labels = torch.cat([split.y for split in splits.values()])
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.classes):
            label_range = f"{labels.min()} to {labels.max()}"
            raise DataError(
                f"{self.name} has labels from {label_range}, but classes from 0 to {len(self.classes) - 1}: number the "
                "classes from 0, and name all of them or none"
            )
        shapes = {name: tuple(split.x.shape[1:]) for name, split in splits.items()}
        for name, shape in shapes.items():
            if shape != shapes["training"]:
                raise DataError(
                    f"{self.name} has training and {name} images of different shapes, {shapes['training']} and {shape}"
                )

    def __repr__(self) -> str:
        shape = "x".join(map(str, (self.train if len(self.train) else self.test).x.shape[1:]))
        return f"DataSet({self.name}, {len(self.train)} + {len(self.test)} images {shape}, {len(self.classes)} classes)"

    def normalise(self, x: Tensor) -> Tensor:
        """(x / 255 - mean) / std in float32, for uint8 images of this or another data set with the same channels.

        Out-of-distribution images are normalised by the statistics of the data set that the network was trained on.
        """
        if not self.mean:
            raise DataError(
                f"{self.name} has no training images, so it has no mean and std: "
                "normalise with the data set that the network was trained on"
            )
        if x.dtype != torch.uint8 or x.dim() != 4 or x.shape[1] != len(self.mean):
            raise DataError(
                f"{self.name} normalises uint8 images (n, {len(self.mean)}, height, width), "
                f"not {x.dtype} of shape {tuple(x.shape)}"
            )
        mean, std = (255 * torch.tensor(values, device=x.device).view(-1, 1, 1) for values in (self.mean, self.std))
        return x.float().sub_(mean).div_(std)

    def split_validation(self, fraction: float, seed: int = 0) -> tuple[Split, Split]:
        """The images for training and those for validation.

        The latter are those that the data set has for it, or else a random `fraction` of every class of the training
        images, the same for the same seed.
        """
        return self.train.split(fraction, seed) if self.validation is None else (self.train, self.validation)

    def batches(
        self,
        split: Split,
        batch_size: int,
        *,
        seed: int = 0,
        augment: Augment | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> Batches:
        """Batches of `split` (of this or of another data set), normalised with the statistics of this data set."""
        return Batches(
            split,
            batch_size,
            normalise=self.normalise,
            seed=seed,
            augment=augment,
            shuffle=shuffle,
            drop_last=drop_last,
            rank=rank,
            ranks=ranks,
        )


def _moments(x: Tensor) -> tuple[float, float]:
    """Mean and standard deviation of uint8 pixels / 255, exact: from the histogram of the 256 values."""
    count = np.zeros(256, np.int64)
    for start in range(0, len(x), 4096):  # in pieces, because bincount needs 8 bytes per pixel
        count += np.bincount(x[start : start + 4096].cpu().numpy().ravel(), minlength=256)
    weight = count / count.sum()
    value = np.arange(256) / 255
    mean = float(weight @ value)
    std = float(np.sqrt(weight @ (value - mean) ** 2))
    return mean, std or 1.0  # a constant channel has nothing to scale
