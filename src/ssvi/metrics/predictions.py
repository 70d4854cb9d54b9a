"""The predictions for a data set, collected batch by batch."""

from __future__ import annotations

import torch
from torch import Tensor

from ._checks import checked_predictions


class Predictions:
    """Collects probabilities and labels, so that metrics are computed from the whole data set.

        predictions = Predictions()
        for x, y in loader:
            predictions.add(model(x).softmax(-1), y)
        ece(predictions.probs, predictions.labels)

    Calibration and ranking errors are not averages over batches, so all probabilities must be kept: 10,000 examples of
    100 classes take 4 MB.
    """

    def __init__(self) -> None:
        self._probs: list[Tensor] = []
        self._labels: list[Tensor] = []

    def add(self, probs: Tensor, labels: Tensor) -> None:
        """Append a batch: (n, K) probabilities and (n,) labels."""
        probs, labels = checked_predictions(probs, labels)
        if self._probs and probs.shape[1] != self._probs[0].shape[1]:
            raise ValueError(
                f"probs: {probs.shape[1]} classes after batches of {self._probs[0].shape[1]} classes; "
                "collect each data set in its own Predictions"
            )
        self._probs.append(probs)
        self._labels.append(labels)

    def __len__(self) -> int:
        return sum(map(len, self._labels))

    @property
    def probs(self) -> Tensor:
        """All probabilities so far, (n, K)."""
        return self._concatenated(self._probs)

    @property
    def labels(self) -> Tensor:
        """All labels so far, (n,)."""
        return self._concatenated(self._labels)

    def _concatenated(self, batches: list[Tensor]) -> Tensor:
        if not batches:
            raise ValueError("Predictions: no batch was added; the loader was empty")
        return torch.cat(batches)
