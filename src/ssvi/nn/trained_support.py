"""The support that keeps what a trained network has learnt: the positions of its most important weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


def most_important(importance: Tensor, s: int) -> Tensor:
    """The s sorted flat positions of the largest importance, with the best one of every output if s is large enough.

    An output is a row, importance[i]. Without its best weight an output would be a constant, and what the layers after it
    have learnt of it would be lost.
    """
    flat, outputs = importance.detach().flatten(), importance.shape[0]
    rank = flat.clone()
    if outputs <= s < flat.numel():
        best = importance.detach().reshape(outputs, -1).argmax(1)
        rank[best + torch.arange(outputs, device=best.device) * (flat.numel() // outputs)] = torch.inf
    order = torch.sort(rank, descending=True, stable=True).indices  # stable: equal ones go by position
    return order[:s].sort().values


def curvature_importance(
    net: nn.Module, batches: Iterable[tuple[Any, Any]], loss: Callable[[Any, Any], Tensor]
) -> dict[str, Tensor]:
    """h_i w_i^2 for every parameter of a plain network, by name: what `to_bnn(..., support=...)` takes.

    Without the weight w_i the loss of a trained network grows by h_i w_i^2 / 2, where h_i is the second derivative
    (LeCun et al. 1990, "Optimal Brain Damage"). h_i is estimated by the mean of the squared gradients of the batches,
    which for batches of one size is proportional to the Fisher information; only the order of the weights counts.

    Args:
        net: a trained network. It is in evaluation mode meanwhile, and keeps its gradients and its mode.
        batches: pairs (x, y); some dozens of batches are enough. Smaller ones tell more.
        loss: of the output and y, such as `torch.nn.functional.cross_entropy`.
    """
    parameters = {name: p for name, p in net.named_parameters() if p.requires_grad}
    squares = {name: torch.zeros_like(p) for name, p in parameters.items()}
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        for x, y in batches:
            gradients = torch.autograd.grad(loss(net(x), y), list(parameters.values()), allow_unused=True)
            for square, gradient in zip(squares.values(), gradients, strict=True):
                if gradient is not None:
                    square += gradient.detach().square()
    finally:
        for module, mode in modes.items():
            module.training = mode
    return {name: square * parameters[name].detach().square() for name, square in squares.items()}
