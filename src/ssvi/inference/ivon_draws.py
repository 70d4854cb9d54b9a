"""The thetas of IVON between two steps: their draws, and what their gradients say of the curvature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ssvi import kernels
from ssvi.inference import distributed
from ssvi.kernels.ivon import Layer
from ssvi.nn.posterior import SparseGaussian


class _Noted(NamedTuple):
    """What one backward pass has found of one layer."""

    layer: Layer
    noise: Tensor
    """sigma eps of its theta."""
    gradient: Tensor


class Draws:
    """Draws theta for posteriors, and adds up g eps / sigma of their gradients g.

    A backward pass only notes its gradients, in each process before DistributedDataParallel averages them. All layers are
    added up together, when the next theta is drawn or a step needs them.

    Args:
        layer_of: what the kernels must know of a posterior.
    """

    def __init__(self, layer_of: Callable[[SparseGaussian], Layer]) -> None:
        self._layer_of = layer_of
        self._noted: list[_Noted] = []
        self._totals: dict[nn.Parameter, Tensor] = {}
        self.samples = 0
        """Thetas since the last `forget`, also those that were only the mean; not the one of a block that has not ended."""
        self.in_block = False
        """Whether a block has not ended."""

    @contextmanager
    def pinned(self, posteriors: Iterable[SparseGaussian], lambda_: float) -> Iterator[None]:
        """Inside, each posterior has a theta = mu + sigma eps. One that is pinned at its mean stays there."""
        before = {posterior: posterior.pinned for posterior in posteriors if not posterior.pins_at_mean}
        try:
            self._pin([*before], lambda_)
            self.in_block = True
            yield
            self.samples += 1
        finally:
            self.in_block = False
            for posterior, pinned in before.items():
                posterior.pin(pinned)

    def _pin(self, posteriors: Sequence[SparseGaussian], lambda_: float) -> None:
        self._add_up(lambda_)
        layers = [self._layer_of(posterior) for posterior in posteriors]
        noises = kernels.ivon_module(layers).draw(layers, lambda_)
        for posterior, layer, noise in zip(posteriors, layers, noises, strict=True):
            theta = layer.mu + noise
            if theta.requires_grad:
                theta.register_hook(partial(self._note, layer, noise))
            posterior.pin(theta)

    def _note(self, layer: Layer, noise: Tensor, gradient: Tensor) -> None:
        # A copy: a later backward pass of the block adds to mu.grad, which may be this very memory.
        self._noted.append(_Noted(layer, noise, gradient.detach().clone()))

    def estimates(self, lambda_: float) -> dict[nn.Parameter, Tensor]:
        """The sums of g eps / sigma since the last `forget`, by mu: the means over all processes."""
        self._add_up(lambda_)
        return dict(zip(self._totals, distributed.means([*self._totals.values()]), strict=True))

    def refuse_none(self, means: Iterable[nn.Parameter]) -> None:
        """Gradients that come from no theta are an error: they say nothing of the curvature, so sigma would never change."""
        if not (self.samples or self.in_block) and any(mu.grad is not None for mu in means):
            raise RuntimeError(
                "IVON: mu has a gradient, but no theta was drawn since the last step. Put the forward and the backward pass "
                "inside a block `with optimizer.sampled():`"
            )

    def refuse_pending(self) -> None:
        """Noise or sums that no step has used are an error: they belong to the support of now, and cannot move with it."""
        if self._noted or self._totals:
            raise RuntimeError(
                "an update of gamma between `with optimizer.sampled():` and optimizer.step() would mix the estimates of the "
                "curvature: call subspace.step() after optimizer.step(), or drop the batch by optimizer.zero_grad()"
            )

    def forget_dropped(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """Forget thetas whose gradients `bnn.zero_grad()` has dropped: no parameter of the groups has any."""
        if self.samples and all(parameter.grad is None for group in groups for parameter in group["params"]):
            self.forget()

    def forget(self) -> None:
        """Begin a new step."""
        self._noted, self._totals, self.samples = [], {}, 0

    def _add_up(self, lambda_: float) -> None:
        if not self._noted:
            return
        layers, noises, gradients = zip(*self._noted, strict=True)
        for layer in layers:
            if layer.mu not in self._totals:
                self._totals[layer.mu] = torch.zeros_like(layer.h)
        totals = [self._totals[layer.mu] for layer in layers]
        kernels.ivon_module(layers).curvature(layers, noises, gradients, lambda_, totals)
        self._noted = []
