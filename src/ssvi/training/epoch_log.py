"""What is looked at once per epoch: validation at the posterior mean, how far sigma moved, how the support changed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssvi.data import Batches
from ssvi.inference.evaluate import evaluate
from ssvi.nn.layers import gaussians, layers, posteriors
from ssvi.nn.random_tensor import at_mean


def validate(net: nn.Module, batches: Batches) -> dict[str, float]:
    """Quality on validation images, if there are any."""
    if not len(batches):
        return {}
    with at_mean(net):
        found = evaluate(net, batches, 1)
    return {"accuracy": found.accuracy, "nll": found.nll, "ece": found.ece}


def indices(net: nn.Module) -> dict[str, Tensor]:
    """The support of each sparse layer."""
    made = posteriors(net) if _has_posteriors(net) else {}
    return {name: p.index.clone() for name, p in made.items() if p.s < p.d}


def support(net: nn.Module, before: dict[str, Tensor]) -> dict[str, Any]:
    """How far sigma moved from its start, and the agreement of the support with what it was."""
    return {"sigma_drift": _drift(net), "iou": _iou(before, indices(net))} if _has_posteriors(net) else {}


def _has_posteriors(net: nn.Module) -> bool:
    return any(True for _ in layers(net))


@torch.no_grad()
def _drift(bnn: nn.Module) -> dict[str, float]:
    """Mean |log(sigma / sigma_init)| of each layer."""
    return {name: (p.sigma / p.sigma_init).log().abs().mean().item() for name, p in gaussians(bnn).items()}


def _iou(before: dict[str, Tensor], now: dict[str, Tensor]) -> float:
    """Intersection over union of the supports, over all sparse layers."""
    both = sum(int(torch.isin(now[name], before[name]).sum()) for name in now)
    total = sum(index.numel() for index in now.values())
    return both / (2 * total - both) if total else 1.0
