"""Dense IVON, as fast as it can be had here: the side that the sparse IVON step is measured against.

It is a plain network: torch's own layers read theta from their weight, so a step is one of plain training, in either
memory format. The update is our own fused one, over the dense weights. The same library at density 1 would be slower, since
its layers would scatter theta into a dense weight first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.ivon import Evidence, Layer, Rates

_PRIOR_SIGMA, _H0, _GAIN = 0.1, 1.0, 10.0


class DenseIVON:
    """IVON for the weights of convolutions and linear layers, and SGD for the rest, with the defaults of `ssvi.IVON`."""

    def __init__(self, net: nn.Module, train_size: int) -> None:
        self._weights = [m.weight for m in net.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
        weights = {id(weight) for weight in self._weights}
        self._rest = torch.optim.SGD([p for p in net.parameters() if id(p) not in weights], lr=1e-4, momentum=0.9)
        delta, self._lambda, self._t = 1 / (train_size * _PRIOR_SIGMA**2), float(train_size), 0
        self._layers = [_layer(weight, delta) for weight in self._weights]
        self._noises: list[Tensor] = []

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """From here on the weights are theta, which is not undone: the next step needs another theta."""
        self._noises = kernels.ivon_module(self._layers).draw(self._layers, self._lambda)
        for weight, layer, noise in zip(self._weights, self._layers, self._noises, strict=True):
            torch.add(layer.mu, noise, out=_flat(weight.detach()))
        yield

    @torch.no_grad()
    def step(self) -> None:
        """g, h, mu and sigma by the gradients at theta."""
        self._t += 1
        gradients = [_flat(weight.grad) for weight in self._weights if weight.grad is not None]
        totals = [torch.zeros_like(layer.h) for layer in self._layers]
        module, rate = kernels.ivon_module(self._layers), Rates(1e-4, 0.9, 0.9999, math.inf, self._t)
        module.curvature(self._layers, self._noises, gradients, self._lambda, totals)
        evidence = [Evidence(gradient, total, 1) for gradient, total in zip(gradients, totals, strict=True)]
        module.step(self._layers, [rate] * len(self._layers), evidence, self._lambda)
        self._rest.step()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self._rest.zero_grad()
        for weight in self._weights:
            weight.grad = None


def _layer(weight: Tensor, delta: float) -> Layer:
    mu = _flat(weight.detach()).clone()
    h, zeros = torch.full_like(mu, _H0), torch.zeros_like(mu)
    return Layer(mu, zeros, h, mu.new_zeros(()), zeros.clone(), mu.new_tensor(0.1), _GAIN, delta)


def _flat(weight: Tensor) -> Tensor:
    """All numbers in the order of memory, without a copy: a convolution may be in channels_last."""
    if weight.is_contiguous():
        return weight.view(-1)
    return weight.permute(0, 2, 3, 1).view(-1)
