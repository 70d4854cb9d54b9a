"""The training examples, each with a weight, and the batches of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from ssvi.estimators.errors import EstimatorError

Array = NDArray[Any]


def counted_rows(X: Array, y: Array, sample_weight: Any) -> tuple[Array, Array, Array | None]:
    """X, y and the weights, without the rows of weight 0, which do not count at all; no weights if none are given."""
    if sample_weight is None:
        return X, y, None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise EstimatorError(
            f"sample_weight has {weight.min()}: a weight is how many times an example counts, 0 or more"
        )
    rows = weight > 0
    return X[rows], y[rows], weight[rows]


@dataclass(frozen=True)
class Examples:
    """Inputs (n, ...), targets (n, ...), and how many times each example counts, (n,), or None: once.

    The bound of variational inference with weights w is sum_i w_i loss_i + KL, the same as for rows that are repeated w_i
    times. There are W = sum_i w_i examples in it, and n rows. A batch of b rows gives l = n / (W b) sum_i w_i loss_i, of
    which the mean over all batches is sum_i w_i loss_i / W: that of the repeated rows. So `size` is W, and a batch has
    the weights n w_i / W, whose mean is 1.
    """

    x: Tensor
    y: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def size(self) -> float:
        """W: the number of examples in the bound."""
        return len(self) if self.weight is None else float(self.weight.sum())

    def batch(self, rows: Tensor) -> Examples:
        """These rows; the weights are divided by their mean over all rows."""
        weight = None if self.weight is None else self.weight[rows] * (len(self) / self.size)
        return Examples(self.x[rows], self.y[rows], weight)


@dataclass(frozen=True)
class Batches:
    """The batches of all epochs: equal parts of a new order in each epoch, none smaller than `batch_size` if n is not.

    The order is from torch's global generator.
    """

    examples: Examples
    batch_size: int
    epochs: int

    @property
    def per_epoch(self) -> int:
        """Batches in one pass."""
        return max(1, len(self.examples) // self.batch_size)

    def __len__(self) -> int:
        return self.epochs * self.per_epoch

    def __iter__(self) -> Iterator[Examples]:
        device = self.examples.x.device
        for _ in range(self.epochs):
            for rows in torch.randperm(len(self.examples)).tensor_split(self.per_epoch):
                yield self.examples.batch(rows.to(device))
