"""What training needs of its data: images or a table."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ssvi.data.split import Examples


class TrainingData(Protocol):
    """Examples for training, validation and testing, and how they become the inputs of a network."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes; none where a number is predicted."""

    @property
    def train(self) -> Examples:
        """The examples for training, and for validation where those are a share of them."""

    @property
    def test(self) -> Examples:
        """The examples for testing; there may be none."""

    def split_validation(self, fraction: float, seed: int = 0) -> tuple[Examples, Examples]:
        """The examples for training and those for validation."""

    def normalise(self, x: Tensor) -> Tensor:
        """The inputs of a batch as the network sees them."""
