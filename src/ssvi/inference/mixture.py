"""The average prediction of several networks: an ensemble, or the states of a sampler's chain."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ssvi.inference.predict import softmax


class Mixture(nn.Module):
    """p(y|x) = 1/M sum_m p(y|x, theta_m) over M networks. Probabilities are averaged, not logits.

    It is a network like any other: its output is log p(y|x), so that softmax and cross-entropy work as usual.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not len(self.members):
            raise ValueError("members is empty: a mixture averages the predictions of at least one network")

    def each(self, x: Tensor) -> Tensor:
        """p(y|x, theta_m) of every network, (members, batch, classes)."""
        return torch.stack([softmax(member(x)) for member in self.members])

    def forward(self, x: Tensor) -> Tensor:
        """log p(y|x), (batch, classes): logits whose softmax is the average probability."""
        return self.each(x).mean(0).log()
