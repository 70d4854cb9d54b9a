"""What is looked at once per epoch: the guard, validation at the posterior mean, cost, sigma and the support."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssvi import flops
from ssvi.data import Batches
from ssvi.inference.evaluate import evaluate
from ssvi.nn.layers import gaussians, layers, posteriors
from ssvi.nn.random_tensor import at_mean
from ssvi.training import guard, memory
from ssvi.training.epoch_line import EpochLine, StepNumbers, Validation
from ssvi.training.progress import Progress


def summarise(
    numbers: StepNumbers, net: nn.Module, progress: Progress, batches: Batches, validation: Batches
) -> EpochLine:
    """The line of an epoch, from its averages and the network at its end; an error if the network is beyond repair."""
    guard.check(net)
    return EpochLine(
        **vars(numbers),
        validation=_validate(net, validation),
        flops=_flops(net, progress, batches),
        peak_memory_bytes=memory.peak(),
        **_support(net, progress.indices),
    )


def indices(net: nn.Module) -> dict[str, Tensor]:
    """The support of each sparse layer."""
    return {name: p.index.clone() for name, p in (posteriors(net) if _has_posteriors(net) else {}).items() if p.s < p.d}


def _validate(net: nn.Module, batches: Batches) -> Validation | None:
    """Quality on validation images, if there are any."""
    if not len(batches):
        return None
    with at_mean(net):
        evaluation = evaluate(net, batches, 1)
    return Validation(evaluation.accuracy, evaluation.nll, evaluation.ece)


def _flops(net: nn.Module, progress: Progress, batches: Batches) -> int:
    """FLOPs of the epoch, counted by the network at its end."""
    return flops.training(
        net, batches.split.x[:1].float(), steps=len(batches), batch_size=batches.batch_size,
        updates=progress.dense_gradients, proposals=progress.proposals,
    )  # fmt: skip


def _support(net: nn.Module, before: dict[str, Tensor]) -> dict[str, Any]:
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
