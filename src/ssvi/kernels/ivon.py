"""The update of IVON over all layers at once, in torch's operators: any device and dtype, and the oracle of the others.

`ssvi.inference.ivon` has the mathematics and calls three functions: `draw`, `curvature` and `step`. Every module that serves
them has these signatures, and `ssvi.kernels.ivon_module` chooses one. With lambda = N / temperature, layer by layer:

    draw         noise = sigma eps, with sigma = 1 / sqrt(lambda (h + delta)); theta = mu + noise
    curvature    h_hat = gradient eps / sigma = gradient noise lambda (h + delta), added to what is there
    step         g, h, mu and rho, in place

Between them lies what each process does by itself (the backward pass) and what all do together (averages of h_hat).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

H_STEP = 2.0
"""Where the h by which a step divides starts at most: with more, steps would be too short where sigma starts small."""

LEAST = 0.01
"""The least h + delta, as a share of delta: at temperature 1 no sigma is above 10 prior_sigma (`MOST` of `ssvi.nn.spread`).
The formulas keep h + delta positive, but many steps can take it down to where float32 has only a 0."""


class Layer(NamedTuple):
    """What the update knows of one layer: tensors of its s live weights, two of a single number, and delta.

    g and h have float32 at least, where mu and rho may have less.
    """

    mu: Tensor
    g: Tensor
    h: Tensor
    excess: Tensor
    """How far the start of h lies above `H_STEP`: a number, 0 or more."""
    rho: Tensor | None
    """rho = log(sigma / sigma_init) / gain is written by a step. None: sigma has another map, and the caller writes it."""
    sigma_init: Tensor
    gain: float
    delta: float


def check_sizes(h: Tensor, tensors: Iterable[Tensor | None]) -> None:
    """Refuse tensors that have not one number for each live weight: a kernel would read past them."""
    for tensor in tensors:
        if tensor is not None and tensor.shape != h.shape:
            raise ValueError(f"IVON: {tuple(tensor.shape)} numbers for {tuple(h.shape)} live weights of a layer")


def as_read(gradient: Tensor) -> Tensor:
    """A gradient as a kernel reads it. That of a sum, for example, is one number with strides of 0."""
    return gradient.to(torch.float32).contiguous()


class Rates(NamedTuple):
    """The settings of one layer at one step, which has the number `t` (1 is the first)."""

    lr: float
    b1: float
    b2: float
    clip_radius: float
    t: int


class Evidence(NamedTuple):
    """What the backward passes of a step have found for one layer: sums over `samples` thetas."""

    gradient: Tensor
    h_hat: Tensor | None
    """None: theta was pinned at its mean, and h stays."""
    samples: int


@torch.no_grad()
def draw(layers: Sequence[Layer], lambda_: float) -> list[Tensor]:
    """sigma eps of every layer, in the dtype of its mu: theta = mu + sigma eps."""
    return [(torch.randn_like(layer.h) * _sigma(layer, lambda_)).to(layer.mu.dtype) for layer in layers]


@torch.no_grad()
def curvature(
    layers: Sequence[Layer], noises: Sequence[Tensor], gradients: Sequence[Tensor], lambda_: float,
    totals: Sequence[Tensor],
) -> None:  # fmt: skip
    """Add gradient eps / sigma to the total of every layer. One layer may occur several times.

    The noise is that of `draw`, and h has not changed since.
    """
    for layer, noise, gradient, total in zip(layers, noises, gradients, totals, strict=True):
        total.add_(gradient.to(total.dtype) * noise.to(total.dtype) * (lambda_ * (layer.h + layer.delta)))


@torch.no_grad()
def step(layers: Sequence[Layer], rates: Sequence[Rates], evidence: Sequence[Evidence], lambda_: float) -> None:
    """The formulas of `ssvi.inference.ivon`, in place. `lambda_` is that of the coming step, whose sigma is written."""
    for layer, rate, found in zip(layers, rates, evidence, strict=True):
        _move(layer, rate, found)
        if layer.rho is not None:
            layer.rho.copy_((_sigma(layer, lambda_).to(layer.rho.dtype) / layer.sigma_init).log() / layer.gain)


def _move(layer: Layer, rate: Rates, found: Evidence) -> None:
    mu, g, h, delta = layer.mu, layer.g, layer.h, layer.delta
    g.lerp_(found.gradient.to(g.dtype) / found.samples, 1 - rate.b1)
    if found.h_hat is not None:
        change = found.h_hat / found.samples - h
        h.add_((1 - rate.b2) * change + 0.5 * (1 - rate.b2) ** 2 * change**2 / (h + delta))
        h.clamp_(min=(LEAST - 1) * delta)
    start = rate.b2**rate.t * layer.excess
    divisor = torch.maximum(h - start, h.clamp_max(H_STEP)) + delta
    direction = (g / (1 - rate.b1**rate.t) + delta * mu) / divisor
    mu.sub_(direction.clamp(-rate.clip_radius, rate.clip_radius).to(mu.dtype), alpha=rate.lr)


def _sigma(layer: Layer, lambda_: float) -> Tensor:
    return (lambda_ * (layer.h + layer.delta)).rsqrt()
