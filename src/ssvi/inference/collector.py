"""Listens to the layers of a network for an update of gamma: dl/dtheta at all d positions, from x and dl/dy alone.

While a collector is attached to a layer, each use of the layer saves its input x. When dl/dy arrives in the backward pass,
the dense gradient of that one layer is formed. At the end of the batch it is scored, reduced to what the next batches and
the update can need (`score_sums`), and freed.

All backward passes until the call of `Subspace.step` are micro-batches of one batch, and their gradients are added up.
Only the user knows which is the last. If their number is given, the gradient is freed at the end of the last of them, so
with one backward pass per batch no two layers have a dense gradient at the same time. Otherwise each layer keeps its d
numbers from its backward pass to the call of `step`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi.inference import distributed
from ssvi.inference.addition import Addition, AdditionScores
from ssvi.inference.backward_pass import BackwardPass, Use
from ssvi.inference.score_sums import ScoreSums
from ssvi.kernels.geometry import Geometry
from ssvi.nn.sparse import SparsePosterior


class ScoreCollector:
    """Listens to one posterior, and gives `sums` the terms of `addition` for each batch.

    A batch whose gradient is not finite in this layer does not count in it.

    Args:
        posterior: whose gradients are collected.
        addition: the criterion.
        sums: where the terms of each batch go.
        k: the number of absent positions that the update can need.
        micro_batches: backward passes per batch; None if that is not known.
    """

    def __init__(
        self, posterior: SparsePosterior, addition: Addition, sums: ScoreSums, k: int, micro_batches: int | None
    ) -> None:
        self.posterior, self.addition, self.sums = posterior, addition, sums
        self.k, self.micro_batches = k, micro_batches
        self.passes = 0
        """Backward passes of the batch so far."""
        self.spoiled = False
        """Whether the gradient of some batch was not finite."""
        self._pass = BackwardPass(self._end_pass)
        self._gradient: Tensor | None = None
        self._arrived: list[tuple[Tensor, Geometry, Tensor]] = []

    def watch(self, x: Tensor, y: Tensor, geometry: Geometry) -> None:
        """y = theta * x was computed: wait for dl/dy."""
        if y.requires_grad:
            use = self._pass.expect()
            x = x.detach()
            y.register_hook(lambda grad_y: self._receive_output_gradient(use, x, geometry, grad_y))

    def watch_weight(self, weight: Tensor) -> None:
        """The dense weight itself was used: wait for its gradient, which is dl/dtheta."""
        if weight.requires_grad:
            use = self._pass.expect()
            weight.register_hook(lambda gradient: self._receive_weight_gradient(use, gradient))

    @torch.no_grad()
    def end_batch(self) -> None:
        """No more micro-batches will come: score what is not scored yet."""
        self._add_up()
        self._score()
        self._pass.reset()
        self.passes = 0

    def result(self) -> AdditionScores | None:
        """The scores, or None if no finite gradient has passed through the layer."""
        return self.sums.scores(self.k) if self.sums.batches else None

    def _receive_output_gradient(self, use: Use, x: Tensor, geometry: Geometry, grad_y: Tensor) -> None:
        self._arrived.append((x, geometry, grad_y))
        self._pass.arrived(use)

    def _receive_weight_gradient(self, use: Use, gradient: Tensor) -> None:
        self._gradient = gradient.clone() if self._gradient is None else self._gradient + gradient
        self._pass.arrived(use)

    @torch.no_grad()
    def _end_pass(self) -> None:
        self._add_up()
        self.passes += 1
        if self.micro_batches is not None and self.passes > self.micro_batches:
            raise RuntimeError(
                f"micro_batches={self.micro_batches}, but this is backward pass {self.passes} since the last call of "
                "subspace.step(): give the right number, or None for any number"
            )
        if self.passes == self.micro_batches:
            self._score()

    def _add_up(self) -> None:
        for x, geometry, grad_y in self._arrived:
            term = geometry.weight_gradient(x.to(grad_y.dtype), grad_y)
            self._gradient = term if self._gradient is None else self._gradient.add_(term)
        self._arrived.clear()

    def _score(self) -> None:
        gradient, self._gradient = self._gradient, None
        if gradient is None:
            return
        gradient = distributed.mean_(gradient).flatten()
        if not gradient.isfinite().all():  # of the mean, so that all processes agree
            self.spoiled = True
            return
        terms = self.addition.terms(gradient)
        if terms.shape[1:] != (self.posterior.d,):
            raise ValueError(
                f"addition: scores of shape {tuple(terms.shape[1:])} for {self.posterior.d} weights; "
                "return one score per weight"
            )
        if terms.isnan().any():
            raise FloatingPointError("addition: NaN among the scores of a finite gradient; nothing was changed")
        self.sums.add(terms)
