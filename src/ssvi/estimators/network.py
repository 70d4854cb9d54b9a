"""The plain network of an estimator: an MLP, or the user's own module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ssvi.estimators.errors import EstimatorError
from ssvi.nn.eval_mode import in_eval_mode

Module = nn.Module | Callable[[int, int], nn.Module]
"""A network, which is copied; or what makes one from the number of its inputs and of its outputs."""


def mlp(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Module:
    """Linear layers with ReLUs between them; without hidden units a linear model."""
    sizes = [inputs, *hidden, outputs]
    linear = [nn.Linear(a, b) for a, b in pairwise(sizes)]
    return nn.Sequential(*[layer for one in linear[:-1] for layer in (one, nn.ReLU())], linear[-1])


def plain_network(module: Module | None, hidden: Sequence[int], inputs: int, outputs: int) -> nn.Module:
    """A new network: an MLP, a copy of the module, or what the function makes."""
    if module is None:
        return mlp(inputs, hidden, outputs)
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    net = module(inputs, outputs) if callable(module) else None
    if not isinstance(net, nn.Module):
        raise EstimatorError(
            f"module={module!r} is no network, and makes none: give a torch.nn.Module, or a function "
            "(inputs, outputs) -> torch.nn.Module"
        )
    return net


def check_output(net: nn.Module, x: Tensor, outputs: int) -> None:
    """Refuse a plain network that does not make (n, outputs) from n examples."""
    try:
        with torch.no_grad(), in_eval_mode(net):
            shape = tuple(net(x).shape)
    except RuntimeError as error:
        raise EstimatorError(f"module={net} cannot take inputs of shape {tuple(x.shape)}: {error}") from error
    if shape != (len(x), outputs):
        raise EstimatorError(
            f"module={net} makes {shape} from {len(x)} examples, but ({len(x)}, {outputs}) is needed: "
            f"its last layer must have {outputs} output(s)"
        )
