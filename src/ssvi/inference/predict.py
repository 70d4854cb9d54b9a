"""Prediction: the average over theta ~ q."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ssvi.nn.random_tensor import at_sample


def softmax(logits: Tensor) -> Tensor:
    """Logits -> probabilities of the classes, computed in float32 or better."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(-1)


@torch.no_grad()
def predict_samples(
    bnn: nn.Module,
    x: Tensor,
    samples: int = 5,
    *,
    link: Callable[[Tensor], Tensor] = softmax,
    local: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """p(y | x, theta_n) for theta_n ~ q: (samples, batch, classes).

    Each sample is one theta for the whole batch, as in the paper's evaluation. With `local=True` every activation has
    its own noise instead (local reparameterisation, as in training). `link` maps the network's output to what is
    averaged: softmax for classes; pass `lambda y: y` for regression. Call `bnn.eval()` first if it has BatchNorm.
    """
    if samples < 1:
        raise ValueError(f"samples={samples!r} must be at least 1: it is the number of draws theta ~ q")
    if local:
        return torch.stack([link(bnn(x)) for _ in range(samples)])
    drawn = []
    for _ in range(samples):
        with at_sample(bnn, generator):
            drawn.append(link(bnn(x)))
    return torch.stack(drawn)


def predict(
    bnn: nn.Module,
    x: Tensor,
    samples: int = 5,
    *,
    link: Callable[[Tensor], Tensor] = softmax,
    local: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """p(y | x) = 1/N sum_n p(y | x, theta_n), theta_n ~ q: probabilities are averaged, not logits (Section 2)."""
    return predict_samples(bnn, x, samples, link=link, local=local, generator=generator).mean(0)
