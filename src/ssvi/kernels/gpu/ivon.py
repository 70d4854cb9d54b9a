"""The update of IVON as one launch over all layers: `ssvi.kernels.ivon` has the formulas and the twin in torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ssvi.kernels.gpu import launch
from ssvi.kernels.gpu.launch import Job
from ssvi.kernels.ivon import H_STEP, LEAST, Evidence, Layer, Rates, as_read


def supports(layers: Iterable[Layer]) -> bool:
    """Whether the kernels can serve these layers."""
    return launch.serves(tensor for layer in layers for tensor in layer[:6])


@torch.no_grad()
def draw(layers: Sequence[Layer], lambda_: float) -> list[Tensor]:
    """sigma eps of every layer: all eps from torch's generator of the device, in one call."""
    sizes = [layer.h.numel() for layer in layers]
    noises = torch.randn(sum(sizes), dtype=layers[0].h.dtype, device=layers[0].h.device).split(sizes)
    jobs = [Job((layer.h, noise), (lambda_, layer.delta)) for layer, noise in zip(layers, noises, strict=True)]
    launch.start("draw", jobs)
    return list(noises)


@torch.no_grad()
def curvature(
    layers: Sequence[Layer], noises: Sequence[Tensor], gradients: Sequence[Tensor], lambda_: float,
    totals: Sequence[Tensor],
) -> None:  # fmt: skip
    """Add gradient eps / sigma to the total of every layer. One that occurs several times waits for another launch."""
    launches: list[list[Job]] = []
    seen: Counter[int] = Counter()
    for layer, noise, gradient, total in zip(layers, noises, gradients, totals, strict=True):
        if (number := seen[id(total)]) == len(launches):
            launches.append([])
        launches[number].append(Job((layer.h, noise, as_read(gradient), total), (lambda_, layer.delta)))
        seen[id(total)] += 1
    for jobs in launches:
        launch.start("curvature", jobs)
    torch.autograd.graph.increment_version(totals)


@torch.no_grad()
def step(layers: Sequence[Layer], rates: Sequence[Rates], evidence: Sequence[Evidence], lambda_: float) -> None:
    """g, h, mu and rho of every layer, in place."""
    given = zip(layers, rates, evidence, strict=True)
    launch.start("step", [_step_job(layer, rate, found, lambda_) for layer, rate, found in given])
    for layer in layers:  # as torch's own operators in place: autograd notices a graph that saved them
        torch.autograd.graph.increment_version([tensor for tensor in layer[:5] if tensor is not None])


def _step_job(layer: Layer, rate: Rates, found: Evidence, lambda_: float) -> Job:
    tensors = (layer.h, layer.mu, layer.g, as_read(found.gradient), found.h_hat, layer.rho)
    of_layer = (lambda_, layer.delta, layer.gain, 1 / found.samples)
    of_step = (1 - rate.b1, 1 - rate.b2, 1 / (1 - rate.b1**rate.t), rate.b2**rate.t, H_STEP, rate.b1, LEAST)
    return Job(tensors, (*of_layer, rate.lr, rate.clip_radius, *of_step), (layer.excess, layer.sigma_init))
