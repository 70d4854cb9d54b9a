"""What training needs of its data: images or a table."""

from __future__ import annotations

from typing import Any, Protocol

from ssvi.data.augment import Augment
from ssvi.data.split import Batches, Examples


class TrainingData(Protocol):
    """Examples for training, validation and testing, and batches of them."""

    @property
    def train(self) -> Examples:
        """The examples for training, and for validation where those are a share of them."""

    @property
    def test(self) -> Examples:
        """The examples for testing; there may be none."""

    def split_validation(self, fraction: float, seed: int = 0) -> tuple[Examples, Examples]:
        """The examples for training and those for validation."""

    def batches(
        self,
        split: Any,
        batch_size: int,
        *,
        seed: int = 0,
        augment: Augment | None = None,
        shuffle: bool = True,
        drop_last: bool = False,
        rank: int = 0,
        ranks: int = 1,
    ) -> Batches:
        """Batches of one of its splits, as the network sees them."""
