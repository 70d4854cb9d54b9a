"""Welling, Teh: "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML 2011: SGD that samples.

The target is exp(-U / T) with U the energy of the whole training set. A training loop has the mean loss per example,
l = U / N, and a learning rate for it, so both stay as they are and the sampler does the scaling:

    e = lr / N
    theta <- theta - e grad U + sqrt(2 e T) xi = theta - lr grad l + sqrt(2 e T) xi,    xi ~ N(0, 1)

The noise follows the current e, as the theory wants. There is no accept/reject step. With T = 0 it is SGD.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer


class SGLD(Optimizer):
    """Samples the parameters from exp(-N loss / T), up to the error of finite steps and of the batches.

    On U = h theta^2 / 2 with exact gradients the stationary variance is (T / h) / (1 - e h / 2): right to first order in
    e, and stable for lr h / N < 2.

    The noise comes from torch's global generator; with its state and `state_dict` a run goes on bit for bit. A step
    without noise draws none.

    Args:
        params: parameters or groups of them.
        lr: the learning rate on the mean loss; torch's schedulers change it as they do for SGD.
        train_size: N, the number of examples in the training set.
        temperature: T. 1 is the posterior itself, less is a cold posterior, 0 is SGD. It lives in `param_groups`, so a
            schedule can change it.
    """

    def __init__(self, params: Any, lr: float, *, train_size: int, temperature: float = 1.0) -> None:
        if isinstance(train_size, bool) or not train_size > 0:
            raise ValueError(f"train_size={train_size!r} must be positive: the number of examples in the training set")
        super().__init__(params, {"lr": lr, "train_size": train_size, "temperature": temperature})
        for group in self.param_groups:
            noise_scale(group["lr"], group["train_size"], group["temperature"])

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            scale = noise_scale(group["lr"], group["train_size"], group["temperature"])
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=group["lr"])
                    if scale > 0.0:
                        parameter.add_(torch.randn_like(parameter), alpha=scale)
        return loss


def noise_scale(lr: float, train_size: int, temperature: float) -> float:
    """sqrt(2 e T) with e = lr / N."""
    if not 0.0 <= lr < math.inf:
        raise ValueError(f"lr={lr!r} must be a finite number, 0 or more")
    if not 0.0 <= temperature < math.inf:
        raise ValueError(f"temperature={temperature!r} must be 0 or more: 1 is the posterior, 0 is SGD")
    return math.sqrt(2.0 * lr / train_size * temperature)
