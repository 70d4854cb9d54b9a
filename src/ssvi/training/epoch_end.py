"""What is computed once per epoch: whether training went wrong, validation at the posterior mean, cost, sigma, support."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssvi import flops
from ssvi.data import Batches
from ssvi.errors import UserError
from ssvi.inference.evaluate import NumberEvaluation
from ssvi.methods.job import Training
from ssvi.nn.at_theta import at_mean
from ssvi.nn.layers import layers, posteriors, spread_posteriors
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread
from ssvi.training.progress import EpochLine, Progress, StepNumbers, Validation
from ssvi.training.tasks import Task

RUNAWAY = 5.0
"""Sigma has run away if its mean in a layer exceeds this many times its prior and this many times its start: it can reach
10 times (`ssvi.nn.spread.MOST`)."""

DEAD = 0.02
"""A layer is dead if no |mu|/sigma is above this: it passes nothing but noise."""


class TrainingError(UserError, RuntimeError):
    """Training was stopped; the last good checkpoint is still there."""


def summarise(
    numbers: StepNumbers,
    training: Training[Any],
    progress: Progress,
    task: Task,
    batches: Batches,
    validation: Batches,
) -> EpochLine:
    """The line of an epoch, from its averages and the network at its end; an error if training has gone wrong."""
    net = training.net
    check(net)
    return EpochLine(
        **vars(numbers),
        validation=_validate(net, task, validation),
        flops=_flops(training, progress, batches),
        peak_memory_bytes=peak_memory(),
        **_support(net, progress.indices),
    )


def indices(net: nn.Module) -> dict[str, Tensor]:
    """The support of each sparse layer."""
    return {name: p.index.clone() for name, p in _posteriors(net).items() if p.s < p.d}


def _validate(net: nn.Module, task: Task, batches: Batches) -> Validation | None:
    """Quality on the examples for validation, if there are any."""
    if not len(batches):
        return None
    with at_mean(net):
        evaluation = task.evaluate(net, batches, 1)
    if isinstance(evaluation, NumberEvaluation):
        return Validation(None, evaluation.nll, None, evaluation.rmse)
    return Validation(evaluation.accuracy, evaluation.nll, evaluation.ece)


def _flops(training: Training[Any], progress: Progress, batches: Batches) -> int:
    """FLOPs of the epoch, by the live weights of each step where their number changes, else by those at its end."""
    x = batches.split.x[:1].to(next(training.net.parameters()).device, torch.float32)
    return flops.training(
        training.net, x, steps=len(batches), batch_size=batches.batch_size,
        updates=progress.dense_gradients, proposals=progress.proposals, one_theta=training.one_theta,
        live=progress.live, dense_weight_gradient=training.after_step.revives,
    )  # fmt: skip


def _support(net: nn.Module, before: dict[str, Tensor]) -> dict[str, Any]:
    """How far sigma moved from its start, and the agreement of the support with what it was."""
    return {"sigma_drift": _drift(net), "iou": _iou(before, indices(net))} if _posteriors(net) else {}


def _posteriors(net: nn.Module) -> dict[str, SparsePosterior]:
    """The posteriors by name; a plain network has none."""
    return posteriors(net) if any(layers(net)) else {}


@torch.no_grad()
def _drift(bnn: nn.Module) -> dict[str, float]:
    """Mean |log(sigma / sigma_init)| of each layer."""
    return {name: (p.sigma / p.sigma_init).log().abs().mean().item() for name, p in spread_posteriors(bnn).items()}


def _iou(before: dict[str, Tensor], now: dict[str, Tensor]) -> float:
    """Intersection over union of the supports, over all sparse layers."""
    both = sum(int(torch.isin(now[name], before[name]).sum()) for name in now)
    total = sum(index.numel() for index in now.values())
    return both / (2 * total - both) if total else 1.0


# ---- has training gone wrong? ----------------------------------------------------------------------------------------


@torch.no_grad()
def check(net: nn.Module) -> None:
    """An error that names the first layer with NaN, with a sigma far beyond its prior, or without any signal."""
    for name, posterior in _posteriors(net).items():
        if not (torch.isfinite(posterior.mu).all() and torch.isfinite(posterior.sigma).all()):
            raise TrainingError(f"layer {name!r}: mu or sigma is not finite; lower lr, or clip gradients")
        if isinstance(posterior, SparseSpread):
            _check_sigma(name, posterior)


def _check_sigma(name: str, posterior: SparseSpread) -> None:
    mu, sigma, prior = posterior.mu, posterior.sigma, posterior.prior_sigma
    mean_sigma, highest_snr = sigma.mean().item(), (mu.abs() / sigma).max().item()
    if mean_sigma > RUNAWAY * max(prior, posterior.sigma_init.item()):
        raise TrainingError(
            f"layer {name!r}: sigma has run away, its mean is {mean_sigma:.3g} with prior_sigma={prior:.3g}; "
            "lower lr (or sigma_lr, if the method has it)"
        )
    if highest_snr < DEAD:
        raise TrainingError(
            f"layer {name!r} is dead: no |mu|/sigma exceeds {highest_snr:.2g}, it passes noise only; "
            "set h0 (1, for example) or lower beta_max (the one that the method has), raise prior_sigma or density, or name "
            "the layer in keep_dense"
        )


def peak_memory() -> int:
    """The largest resident size of this program so far, in bytes; 0 where the system does not tell.

    On Linux not ru_maxrss: that begins with the size of the parent.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(next(lines).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
