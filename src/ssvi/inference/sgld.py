"""Welling, Teh: "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML 2011: SGD that samples.

With l the mean loss per example, N the number of examples and lr the learning rate for l:

    e = lr / N
    theta <- theta - lr grad l + sqrt(2 e T) xi,    xi ~ N(0, 1)

lr grad l = e grad U, so this is the usual form for the energy U = N l. The noise follows the current e, as the theory
wants. With T = 0 it is SGD.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ssvi.inference.sampler import Sampler


class SGLD(Sampler):
    """Samples the parameters from exp(-N loss / T), up to the error of finite steps and of the batches.

    On U = h theta^2 / 2 with exact gradients the stationary variance is (T / h) / (1 - e h / 2): right to first order in
    e, and stable for lr h / N < 2.

    `Sampler` says where the random numbers come from.

    Args:
        params: parameters or groups of them.
        lr: the learning rate on the mean loss; torch's schedulers change it as they do for SGD.
        train_size: N, the number of examples in the training set.
        temperature: T. 1 is the posterior itself, less is a cold posterior, 0 is SGD. It is an entry of `param_groups`,
            so a schedule can change it.
    """

    def __init__(self, params: Any, lr: float, *, train_size: int, temperature: float = 1.0) -> None:
        super().__init__(params, {"lr": lr, "train_size": train_size, "temperature": temperature})

    def _noise_scale(self, group: dict[str, Any]) -> float:
        return noise_scale(group["lr"], group["train_size"], group["temperature"])

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], noise_scale: float) -> None:
        parameter.sub_(gradient, alpha=group["lr"])
        if noise_scale > 0.0:
            parameter.add_(torch.randn_like(parameter), alpha=noise_scale)


def noise_scale(lr: float, train_size: int, temperature: float) -> float:
    """sqrt(2 e T) with e = lr / N."""
    if not 0.0 <= lr < math.inf:
        raise ValueError(f"lr={lr!r} must be a finite number, 0 or more")
    if not 0.0 <= temperature < math.inf:
        raise ValueError(f"temperature={temperature!r} must be 0 or more: 1 is the posterior, 0 is SGD")
    return math.sqrt(2.0 * lr / train_size * temperature)
