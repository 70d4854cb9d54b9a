"""Chen, Fox, Guestrin: "Stochastic Gradient Hamiltonian Monte Carlo", ICML 2014: SGD with momentum that samples.

With l the mean loss per example, N the number of examples and lr the learning rate for l:

    eta = lr / N
    v     <- m v - lr grad l + sqrt(2 eta (1 - m - eta / 2) / invT) xi,    xi ~ N(0, 1)
    theta <- theta + v

lr grad l = eta grad U, so this is the usual form for the energy U = N l. eta / 2 is the sampler's guess for the noise that
the gradient itself brings in. With invT = inf it is SGD with momentum.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ssvi.inference.sampler import Sampler


class SGHMC(Sampler):
    """Samples the parameters from exp(-invT N loss), up to the error of finite steps and of the batches.

    On U = h theta^2 / 2 with exact gradients the stationary variance is (T / h) (1 - eta / (2 (1 - m))) / (1 - eta h /
    (2 (1 + m))): right to first order in eta, and stable for lr h / N < 2 (1 + m).

    `Sampler` says where the random numbers come from.

    Args:
        params: parameters or groups of them.
        lr: the learning rate on the mean loss; torch's schedulers change it as they do for SGD.
        momentum: m, one minus the friction.
        train_size: N, the number of examples in the training set.
        inv_temperature: invT. 1 is the posterior itself, more is colder, inf is SGD. It is an entry of `param_groups`,
            so a schedule can change it.
    """

    def __init__(
        self, params: Any, lr: float, momentum: float = 0.9, *, train_size: int, inv_temperature: float = 1.0
    ) -> None:
        if not 0.0 <= momentum < 1.0:
            raise ValueError(
                f"momentum={momentum!r} must be in [0, 1): at 1 there is no friction and no stationary law"
            )
        settings = {"lr": lr, "momentum": momentum, "train_size": train_size, "inv_temperature": inv_temperature}
        super().__init__(params, settings)

    def _noise_scale(self, group: dict[str, Any]) -> float:
        return noise_scale(group["lr"], group["momentum"], group["train_size"], group["inv_temperature"])

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], noise_scale: float) -> None:
        state = self.state[parameter]
        if not state:
            state["velocity"] = torch.zeros_like(parameter)
        velocity = state["velocity"].mul_(group["momentum"]).sub_(gradient, alpha=group["lr"])
        if noise_scale > 0.0:
            velocity.add_(torch.randn_like(velocity), alpha=noise_scale)
        parameter.add_(velocity)


def noise_scale(lr: float, momentum: float, train_size: int, inv_temperature: float) -> float:
    """sqrt(2 eta (1 - m - eta / 2) / invT) with eta = lr / N."""
    if not lr >= 0.0:
        raise ValueError(f"lr={lr!r} must be 0 or more")
    if not inv_temperature > 0.0:
        raise ValueError(f"inv_temperature={inv_temperature!r} must be positive: 1 is the posterior, inf is SGD")
    eta = lr / train_size
    friction = 1.0 - momentum - eta / 2.0
    if friction < 0.0:
        raise ValueError(
            f"lr={lr!r} with momentum={momentum!r} and train_size={train_size!r}: the noise has variance proportional to "
            f"1 - momentum - lr / (2 train_size) = {friction:.3g} < 0; lower lr or momentum"
        )
    return math.sqrt(2.0 * eta * friction / inv_temperature)
