"""What SGLD and SGHMC share: optimisers whose steps add noise, so that they sample the parameters.

The target is exp(-U / T) with U the energy of the whole training set. A training loop has the mean loss per example,
l = U / N, and a learning rate for it, so both stay as they are and the sampler does the scaling by N = `train_size`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from ssvi.inference.elbo import check_train_size


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
