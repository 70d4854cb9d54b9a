"""Samplers: optimisers whose steps add noise, so that they draw the parameters from a posterior instead of a minimum.

The target is exp(-U / T) with U the energy of the whole training set. A training loop has the mean loss per example,
l = U / N, and a learning rate for it, so both stay as they are and the sampler does the scaling by N = `train_size`:
lr grad l = e grad U with e = lr / N, which is the step size of the papers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ssvi.inference.loss import check_train_size


class Sampler(Optimizer, ABC):
    """An optimiser whose step on a parameter adds noise of a scale that its group of settings decides.

    The noise comes from torch's global generator; with its state and `state_dict` a run goes on bit for bit. A step
    whose noise has scale 0 draws no random numbers. There is no accept/reject step.
    """

    def __init__(self, params: Any, settings: dict[str, Any]) -> None:
        check_train_size(settings["train_size"])
        super().__init__(params, settings)
        for group in self.param_groups:
            self._noise_scale(group)  # a wrong setting is an error here and not in the first step

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every parameter that has a gradient; returns the loss if there is a closure to compute it."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            scale = self._noise_scale(group)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group, scale)
        return loss

    @abstractmethod
    def _noise_scale(self, group: dict[str, Any]) -> float:
        """The standard deviation of the noise of one step; raises ValueError if the settings have none."""

    @abstractmethod
    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], noise_scale: float) -> None:
        """One step of one parameter, in place."""


class SGLD(Sampler):
    """Welling, Teh: "Bayesian Learning via Stochastic Gradient Langevin Dynamics", ICML 2011: SGD that samples.

        theta <- theta - lr grad l + sqrt(2 e T) xi,    xi ~ N(0, 1)

    It samples from exp(-N loss / T), up to the error of finite steps and of the batches. The noise follows the current e,
    as the theory wants. On U = h theta^2 / 2 with exact gradients the stationary variance is (T / h) / (1 - e h / 2):
    right to first order in e, and stable for lr h / N < 2.

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
        """sqrt(2 e T)."""
        lr, temperature = group["lr"], group["temperature"]
        if not 0.0 <= lr < math.inf:
            raise ValueError(f"lr={lr!r} must be a finite number, 0 or more")
        if not 0.0 <= temperature < math.inf:
            raise ValueError(f"temperature={temperature!r} must be 0 or more: 1 is the posterior, 0 is SGD")
        return math.sqrt(2.0 * lr / group["train_size"] * temperature)

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], noise_scale: float) -> None:
        parameter.sub_(gradient, alpha=group["lr"])
        if noise_scale > 0.0:
            parameter.add_(torch.randn_like(parameter), alpha=noise_scale)


class SGHMC(Sampler):
    """Chen, Fox, Guestrin: "Stochastic Gradient Hamiltonian Monte Carlo", ICML 2014: SGD with momentum that samples.

        v     <- m v - lr grad l + sqrt(2 e (1 - m - e / 2) / invT) xi,    xi ~ N(0, 1)
        theta <- theta + v

    It samples from exp(-invT N loss), up to the error of finite steps and of the batches. e / 2 is the sampler's guess for
    the noise that the gradient itself brings in. On U = h theta^2 / 2 with exact gradients the stationary variance is
    (T / h) (1 - e / (2 (1 - m))) / (1 - e h / (2 (1 + m))): right to first order in e, and stable for
    lr h / N < 2 (1 + m).

    Args:
        params: parameters or groups of them.
        lr: the learning rate on the mean loss; torch's schedulers change it as they do for SGD.
        momentum: m, one minus the friction.
        train_size: N, the number of examples in the training set.
        inv_temperature: invT. 1 is the posterior itself, more is colder, inf is SGD with momentum. It is an entry of
            `param_groups`, so a schedule can change it.
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
        """sqrt(2 e (1 - m - e / 2) / invT)."""
        lr, momentum, train_size = group["lr"], group["momentum"], group["train_size"]
        inv_temperature = group["inv_temperature"]
        if not lr >= 0.0:
            raise ValueError(f"lr={lr!r} must be 0 or more")
        if not inv_temperature > 0.0:
            raise ValueError(f"inv_temperature={inv_temperature!r} must be positive: 1 is the posterior, inf is SGD")
        e = lr / train_size
        friction = 1.0 - momentum - e / 2.0
        if friction < 0.0:
            raise ValueError(
                f"lr={lr!r} with momentum={momentum!r} and train_size={train_size!r}: the noise has variance proportional "
                f"to 1 - momentum - lr / (2 train_size) = {friction:.3g} < 0; lower lr or momentum"
            )
        return math.sqrt(2.0 * e * friction / inv_temperature)

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any], noise_scale: float) -> None:
        state = self.state[parameter]
        if not state:
            state["velocity"] = torch.zeros_like(parameter)
        velocity = state["velocity"].mul_(group["momentum"]).sub_(gradient, alpha=group["lr"])
        if noise_scale > 0.0:
            velocity.add_(torch.randn_like(velocity), alpha=noise_scale)
        parameter.add_(velocity)
