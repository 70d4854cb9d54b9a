"""What a task is: examples to learn from, a network, a loss, and how its predictions are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs of the network, targets) -> the mean negative log-likelihood."""
Predict = Callable[[Tensor], Tensor]
"""Inputs -> the network's outputs for each theta, (samples, examples, outputs)."""
Metrics = dict[str, float]
"""The columns of the table. One of them is called NLL."""


@dataclass(frozen=True)
class Examples:
    """Inputs (n, ...) and targets (n, ...)."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: Tensor) -> Examples:
        return Examples(self.x[index], self.y[index])

    def split(self, share: float, generator: torch.Generator) -> tuple[Examples, Examples]:
        """A random `share` of the examples, and the others."""
        order = torch.randperm(len(self), generator=generator)
        count = round(share * len(self))
        return self[order[:count]], self[order[count:]]


@dataclass(frozen=True)
class Problem:
    """A task with the examples of one seed or split."""

    train: Examples
    network: Callable[[], nn.Module]
    """A new network, with weights from torch's global generator."""
    loss: Loss
    evaluate: Callable[[Predict], Metrics]


@dataclass(frozen=True)
class Task:
    """A row of problems, one for each seed (or split), and how long to train."""

    name: str
    draw: Callable[[int, bool], Problem]
    """(seed, whether to evaluate on validation examples) -> the problem."""
    epochs: int
    batch_size: int
    optimizer: str
    """Of plain training: "SGD" or "Adam"."""
    over: str = "seeds"
