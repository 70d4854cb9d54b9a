"""What belongs to a live weight besides its parameters: its gradients, and its numbers in the optimisers.

When the support of a layer changes, these tensors must be rearranged together with mu and rho.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.nn.sparse import SparsePosterior


def tensors_per_weight(posterior: SparsePosterior, optimizers: Sequence[Optimizer]) -> list[Tensor]:
    """All tensors with one number per live weight that are not parameters: gradients, momentum, Adam's moments, ..."""
    tensors = []
    for parameter in posterior.per_weight():
        tensors += [] if parameter.grad is None else [parameter.grad]
        for optimizer in optimizers:
            tensors += _state_per_weight(optimizer, parameter)
    return tensors


def _state_per_weight(optimizer: Optimizer, parameter: nn.Parameter) -> list[Tensor]:
    """The optimiser's tensors of the shape of the parameter. Single numbers, like Adam's step, need not follow."""
    tensors = []
    for key, value in optimizer.state.get(parameter, {}).items():
        if torch.is_tensor(value) and value.shape == parameter.shape:
            tensors.append(value)
        elif (torch.is_tensor(value) and value.numel() > 1) or isinstance(value, (list, tuple, dict)):
            raise ValueError(
                f"{type(optimizer).__name__} keeps {key!r} in another shape than its parameter, so it cannot follow an "
                "update of gamma: take an optimiser with state per weight (SGD, Adam, AdamW, ...)"
            )
    return tensors


def check_optimizers(optimizers: Sequence[Optimizer], posteriors: Mapping[str, SparsePosterior]) -> None:
    """Refuse optimisers that do not train every parameter of these posteriors."""
    trained = {p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
    for layer, posterior in posteriors.items():
        for name, parameter in posterior.named_parameters():
            if parameter.requires_grad and parameter not in trained:
                raise ValueError(
                    f"optimizer does not hold {layer}.posterior.{name}: build it from the parameters of the "
                    "converted network, e.g. torch.optim.SGD(bnn.parameters(), lr=...)"
                )
