"""What a prediction gives to the network: tensors of the network's dtype and device in place of numpy's arrays."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

SAMPLES = 5
"""Draws of theta in the paper's evaluation."""


def as_tensor(value: Any, net: nn.Module) -> Any:
    """An array as a tensor on the network's device, floating-point numbers in its dtype; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    like = next((p for p in net.parameters() if p.is_floating_point()), torch.empty(0))
    tensor = torch.from_numpy(np.ascontiguousarray(value))
    return tensor.to(like.device, like.dtype if tensor.is_floating_point() else tensor.dtype)


def without_samples(
    net: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], samples: int
) -> tuple[tuple[Any, ...], int]:
    """The inputs, and the number of samples, which may be the last positional argument: predict(bnn, x, 10).

    That is so where the network has no place for that number. Where it has one, the number is an input.
    """
    number = args[-1] if len(args) > 1 else None
    if not isinstance(number, int) or isinstance(number, bool) or _can_take(net, args, kwargs):
        return args, samples
    if samples != SAMPLES:
        raise TypeError(f"predict(..., {number}, samples={samples}): the number of samples is given twice")
    return args[:-1], number


def _can_take(net: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        _signature(net).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _signature(net: nn.Module) -> inspect.Signature:
    """What `forward` takes. A wrapper such as AveragedModel takes anything, and hands it to its `module`."""
    signature, inside = inspect.signature(net.forward), getattr(net, "module", None)
    takes_anything = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in signature.parameters.values())
    return _signature(inside) if takes_anything and isinstance(inside, nn.Module) else signature
