"""The update of IVON as one native call over all layers: `ssvi.kernels.ivon` has the formulas and the torch twin."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from ctypes import c_int64

import torch
from torch import Tensor, nn

from ssvi.kernels.ivon import Evidence, Layer, Rates, as_read, check_sizes
from ssvi.kernels.native.library import available, library
from ssvi.kernels.native.ops import seed
from ssvi.kernels.native.threads import threads_for

_ADDRESSES = ("mu", "g", "h", "rho", "noise", "h_hat", "gradient", "excess", "sigma_init")
_NUMBERS = ("lambda_", "delta", "gain", "scale", "lr", "b1", "b1_rest", "b2_rest", "clip", "unbias", "start")


class IvonLayer(ctypes.Structure):
    """`IvonLayer` of ivon.cpp: addresses alone, so the caller keeps the tensors alive."""

    _fields_ = [
        ("size", c_int64),
        *((name, ctypes.c_void_p) for name in _ADDRESSES),
        *((name, ctypes.c_float) for name in _NUMBERS),
    ]


def supports(layers: Iterable[Layer]) -> bool:
    """Whether the kernel can serve these layers: every tensor is contiguous, float32 and in the memory of the CPU."""
    return available() and all(_plain(tensor) for layer in layers for tensor in layer[:6] if tensor is not None)


def _plain(tensor: Tensor) -> bool:
    is_plain = type(tensor) in (Tensor, nn.Parameter)  # no fake tensor and no shard, which have no address
    return is_plain and tensor.is_cpu and tensor.dtype is torch.float32 and tensor.is_contiguous()


def draw(layers: Sequence[Layer], lambda_: float) -> list[Tensor]:
    """sigma eps of every layer, with the kernel's own noise (Philox), keyed by torch's generator."""
    noises = [torch.empty_like(layer.h) for layer in layers]
    entries = [_entry(layer, lambda_, noise=noise) for layer, noise in zip(layers, noises, strict=True)]
    library().ssvi_ivon_draw(*_array(entries), int(seed()) % 2**64, _threads(entries))
    return noises


def curvature(
    layers: Sequence[Layer], noises: Sequence[Tensor], gradients: Sequence[Tensor], lambda_: float,
    totals: Sequence[Tensor],
) -> None:  # fmt: skip
    """Add gradient eps / sigma to the total of every layer. One layer may occur several times."""
    gradients = [as_read(gradient) for gradient in gradients]
    jobs = zip(layers, noises, gradients, totals, strict=True)
    entries = [_entry(layer, lambda_, noise=n, gradient=gradient, h_hat=total) for layer, n, gradient, total in jobs]
    library().ssvi_ivon_curvature(*_array(entries), _threads(entries))


def step(layers: Sequence[Layer], rates: Sequence[Rates], evidence: Sequence[Evidence], lambda_: float) -> None:
    """g, h, mu and rho of every layer, in place."""
    evidence = [found._replace(gradient=as_read(found.gradient)) for found in evidence]
    entries = []
    for layer, rate, found in zip(layers, rates, evidence, strict=True):
        entry = _entry(layer, lambda_, gradient=found.gradient, h_hat=found.h_hat)
        entry.lr, entry.b1, entry.b1_rest, entry.b2_rest = rate.lr, rate.b1, 1 - rate.b1, 1 - rate.b2
        entry.clip, entry.unbias, entry.start = rate.clip_radius, 1 / (1 - rate.b1**rate.t), rate.b2**rate.t
        entry.scale = 1 / found.samples
        entries.append(entry)
    library().ssvi_ivon_step(*_array(entries), _threads(entries))
    for layer in layers:  # as torch's own operators in place: autograd notices a graph that saved them
        torch.autograd.graph.increment_version([tensor for tensor in layer[:5] if tensor is not None])


def _entry(
    layer: Layer, lambda_: float, *, noise: Tensor | None = None, gradient: Tensor | None = None,
    h_hat: Tensor | None = None,
) -> IvonLayer:  # fmt: skip
    mu, g, h, excess, rho, sigma_init, gain, delta = layer
    check_sizes(h, (mu, g, rho, noise, gradient, h_hat))
    tensors = (mu, g, h, rho, noise, h_hat, gradient, excess, sigma_init)
    return IvonLayer(h.numel(), *(None if t is None else t.data_ptr() for t in tensors), lambda_, delta, gain)


def _threads(entries: Sequence[IvonLayer]) -> int:
    return threads_for(4 * sum(entry.size for entry in entries))


def _array(entries: Sequence[IvonLayer]) -> tuple[ctypes.Array[IvonLayer], int]:
    return (IvonLayer * len(entries))(*entries), len(entries)
