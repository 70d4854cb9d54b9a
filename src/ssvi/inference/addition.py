"""Addition (Section 3.3.2): which absent weights would lower the loss most, from x and dl/dy alone.

While a collector is attached to a layer, each use of the layer saves its input x. When dl/dy arrives in the backward pass,
the dense gradient of that one layer is formed, scored, reduced to what an update can need, and freed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakSet

import torch
from torch import Tensor

from ssvi.inference import distributed
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.native import select
from ssvi.nn.sparse import SparsePosterior

Criterion = Callable[[Tensor], Tensor]
"""dl/dtheta of a layer, dense -> score of each position; large scores come in. (May overwrite its argument.)"""

BY_NAME: dict[str, tuple[Criterion, bool]] = {
    "sample": (torch.abs_, False),
    "mean": (torch.abs_, True),
    "random": (torch.rand_like, False),
}
"""The criterion, and whether theta = mu while its gradient is taken: criterion 1, criterion 2, and chance (SET)."""


def resolve(addition: str | Criterion) -> tuple[Criterion, bool]:
    """The criterion of that name, or the function itself, which then sees gradients under sampled theta."""
    if callable(addition):
        return addition, False
    if addition not in BY_NAME:
        raise ValueError(
            f"addition={addition!r} is not a criterion: take one of {', '.join(BY_NAME)} "
            "(criterion 3 is mc_steps=K), or pass a function dl/dtheta -> score"
        )
    return BY_NAME[addition]


@dataclass(frozen=True)
class AdditionScores:
    """All that an update needs of d scores: those of the s live weights, and the k best of the absent ones."""

    live_score: Tensor
    absent_index: Tensor
    """Flat positions, increasing."""
    absent_score: Tensor


class ScoreCollector:
    """Listens to one posterior through `mc_steps` backward passes and keeps the mean of its scores."""

    def __init__(self, posterior: SparsePosterior, criterion: Criterion, k: int, mc_steps: int) -> None:
        self.posterior, self.criterion, self.k, self.mc_steps = posterior, criterion, k, mc_steps
        self.total: Tensor | None = None
        """For mc_steps > 1: the sum of the scores of `passes` backward passes."""
        self.passes = 0
        self.scores: AdditionScores | None = None
        self._pending: WeakSet[_PendingUse] = WeakSet()
        self._gradient: Tensor | None = None
        self._arrived: list[tuple[Tensor, Geometry, Tensor]] = []

    def watch(self, x: Tensor, y: Tensor, geometry: Geometry) -> None:
        """y = theta * x was computed: wait for dl/dy."""
        if y.requires_grad:
            use = self._expect_gradient()
            x = x.detach()
            y.register_hook(lambda grad_y: self._receive_output_gradient(use, x, geometry, grad_y))

    def watch_weight(self, weight: Tensor) -> None:
        """The dense weight itself was used: wait for its gradient, which is dl/dtheta."""
        if weight.requires_grad:
            use = self._expect_gradient()
            weight.register_hook(lambda gradient: self._receive_weight_gradient(use, gradient))

    def result(self) -> AdditionScores | None:
        """The scores, or None if no gradient has passed through the layer."""
        if self.total is not None:
            return reduce_scores(self.total / self.passes, self.posterior.index, self.k)
        return self.scores

    def _expect_gradient(self) -> _PendingUse:
        use = _PendingUse()
        self._pending.add(use)  # weakly: a graph that is thrown away without a backward pass takes its use with it
        return use

    def _receive_output_gradient(self, use: _PendingUse, x: Tensor, geometry: Geometry, grad_y: Tensor) -> None:
        self._arrived.append((x, geometry, grad_y))
        self._finish(use)

    def _receive_weight_gradient(self, use: _PendingUse, gradient: Tensor) -> None:
        self._gradient = gradient.clone() if self._gradient is None else self._gradient + gradient
        self._finish(use)

    @torch.no_grad()
    def _finish(self, use: _PendingUse) -> None:
        """A weight that is used several times has the sum of their gradients, so wait for the last one."""
        self._pending.discard(use)
        if self._pending:
            return
        gradient, self._gradient = self._gradient, None
        for x, geometry, grad_y in self._arrived:
            term = geometry.weight_gradient(x.to(grad_y.dtype), grad_y)
            gradient = term if gradient is None else gradient.add_(term)
        self._arrived.clear()
        assert gradient is not None
        self._keep(self.criterion(distributed.mean_(gradient).flatten()))

    def _keep(self, score: Tensor) -> None:
        """Criterion 3 is the mean of |gradient|, and its best k are known only after the last pass: for mc_steps > 1 the
        running sum of the layer is kept between passes. Otherwise the d scores are reduced and freed here."""
        if score.shape != (self.posterior.d,):
            raise ValueError(
                f"addition: scores of shape {tuple(score.shape)} for {self.posterior.d} weights; return one score per weight"
            )
        if torch.isnan(score).any():
            raise FloatingPointError(
                "addition: NaN in the gradient of a batch that an update of gamma needs; nothing was changed. "
                "Lower the learning rate, clip gradients, or look for NaN in the input"
            )
        if self.mc_steps > 1:
            self.total = score if self.total is None else self.total.add_(score)
            self.passes += 1
        else:
            self.scores = reduce_scores(score, self.posterior.index, self.k)


class _PendingUse:
    """One use of a layer whose gradient has not arrived yet."""


def reduce_scores(score: Tensor, index: Tensor, k: int) -> AdditionScores:
    """Reduce d scores, which are overwritten, to the live ones and the k best of the absent ones."""
    live = score.index_select(0, index)
    absent = top_k(score.index_fill_(0, index.long(), -torch.inf), k)
    return AdditionScores(live, absent, score.index_select(0, absent))


def top_k(score: Tensor, k: int) -> Tensor:
    """The positions of the k largest scores, increasing; of equal scores the lower position wins."""
    if select.can_top_k(score):
        return select.top_k(score, k)
    if k == 0:
        return torch.empty(0, dtype=torch.long, device=score.device)
    smallest = torch.topk(score, k, sorted=True).values[-1]
    above = (score > smallest).nonzero().flatten()
    equal = (score == smallest).nonzero().flatten()[: k - above.numel()]
    return torch.cat([above, equal]).sort().values
