"""Several networks, one prediction: an ensemble, or the states of a sampler."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ssvi.inference.predict import softmax


class Mixture(nn.Module):
    """p(y|x) = 1/M sum_m p(y|x, theta_m) over M networks; probabilities are averaged, not logits."""

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def each(self, x: Tensor) -> Tensor:
        """p(y|x, theta_m) of every network, (members, batch, classes)."""
        return torch.stack([softmax(member(x)) for member in self.members])

    def forward(self, x: Tensor) -> Tensor:
        """log p(y|x): logits whose softmax is the average."""
        return self.each(x).mean(0).log()
