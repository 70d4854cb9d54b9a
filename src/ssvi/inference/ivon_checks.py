"""What IVON refuses: settings out of their range, and networks that it cannot train."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.inference.argument_checks import check_real
from ssvi.nn.layers import gaussians, spread_posteriors
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sharded import is_sharded


def check_numbers(
    positive: Mapping[str, float],
    rates: Mapping[str, float],
    shares: Mapping[str, float],
    betas: tuple[float, float],
) -> None:
    """An error that names the first setting, by its name and value, that is out of its range."""
    _check(positive, lambda v: v > 0, "positive")
    _check(rates, lambda v: 0 <= v < math.inf, "a finite number, 0 or more")
    _check_is_pair(betas)
    shares = {"betas[0]": betas[0], "betas[1]": betas[1], **shares}
    _check(shares, lambda v: 0 <= v < 1, "in [0, 1): the share of a running average that a step keeps")


def _check(values: Mapping[str, float], holds: Callable[[float], bool], must: str) -> None:
    for name, value in values.items():
        if not holds(check_real(name, value, must)):
            raise ValueError(f"{name}={value!r} must be {must}")


def _check_is_pair(betas: object) -> None:
    message = f"betas={betas!r} must be a pair of numbers: b1 of the momentum and b2 of the curvature"
    if not isinstance(betas, Sequence):
        raise TypeError(message)
    if len(betas) != 2:
        raise ValueError(message)


def trainable(bnn: nn.Module) -> dict[nn.Parameter, SparseGaussian]:
    """The posteriors that IVON trains, by their mu."""
    for name, other in spread_posteriors(bnn).items():
        if not isinstance(other, SparseGaussian):
            raise ValueError(
                f"IVON trains Gaussian posteriors, and that of layer {name!r} is {other.family}: convert with "
                "to_bnn(..., posterior='gaussian'), or train by ssvi.ELBO and an optimiser of torch"
            )
    by_mu = {posterior.mu: posterior for posterior in gaussians(bnn).values()}
    if not by_mu:
        raise ValueError("bnn has no Gaussian posterior: convert your network with ssvi.to_bnn(net, density=...)")
    refuse_sharded(by_mu.values())
    return by_mu


def refuse_scaler(optimizer: Optimizer) -> None:
    """A step by a GradScaler is an error: it would scale the gradients back, and not the estimates of the curvature.

    To an optimiser that supports scaling it gives `found_inf` during the step.
    """
    if "found_inf" in vars(optimizer):
        raise ValueError(
            "IVON cannot step by a GradScaler, which knows nothing of its estimates of the curvature: use autocast with "
            "bfloat16, which needs no scaler"
        )


def refuse_not_finite(gradients: Iterable[Tensor | None]) -> None:
    """Gradients with a NaN or an infinity are an error, before anything has changed.

    Only on the CPU: elsewhere the look would wait for the device, and `TrainingWatch` tells of the parameters afterwards.
    """
    flat = [g.reshape(-1) for g in gradients if g is not None and g.is_cpu and g.layout is torch.strided]
    if flat and not math.isfinite(torch.cat(flat).sum(dtype=torch.float64).item()):
        raise FloatingPointError(
            "IVON: a gradient is not finite, so the batch or its loss has a NaN or an infinity, or earlier steps were too "
            "long. Nothing has changed: look at the batch, lower lr, or drop the batch by optimizer.zero_grad() and go on"
        )


def refuse_sharded(posteriors: Iterable[SparseGaussian]) -> None:
    """Parameters in pieces are an error.

    theta is drawn before the forward pass, when FSDP2 has not put them together yet, and its gradients would not be averaged
    over the processes.
    """
    if any(is_sharded(posterior.mu) for posterior in posteriors):
        raise ValueError(
            "IVON cannot train parameters that fully_shard has cut into pieces: use DistributedDataParallel, whose traffic "
            "has the size of the live weights alone; or train by ELBO and Adam"
        )
