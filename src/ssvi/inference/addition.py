"""Addition (Section 3.3.2): which absent weights the loss wants most, from x and dl/dy alone.

While a listener is attached, each use of a layer leaves its x; when dl/dy arrives in the backward pass, the dense
gradient of that one layer is formed, scored, reduced to what an update can need, and freed.
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

Score = Callable[[Tensor], Tensor]
"""dl/dtheta of a layer, dense -> score of each position: the bigger, the more wanted. (May overwrite its argument.)"""

BY_NAME: dict[str, tuple[Score, bool]] = {
    "sample": (torch.abs_, False),
    "mean": (torch.abs_, True),
    "random": (torch.rand_like, False),
}
"""The score, and whether theta = mu while it is taken. Criterion 1, criterion 2, and chance (SET)."""


def resolve(addition: str | Score) -> tuple[Score, bool]:
    """The addition criterion of that name, or the function as a score under sampled theta."""
    if callable(addition):
        return addition, False
    if addition not in BY_NAME:
        raise ValueError(
            f"addition={addition!r} is not a criterion: take one of {', '.join(BY_NAME)} "
            "(criterion 3 is mc_steps=K), or pass a function dl/dtheta -> score"
        )
    return BY_NAME[addition]


@dataclass
class AdditionScores:
    """All that an update needs of d scores: those of the s live weights, and the k best of the others."""

    live: Tensor
    absent: Tensor
    """Flat positions, increasing."""
    absent_score: Tensor


class ScoreCollector:
    """Listens to one posterior through `mc_steps` backward passes and keeps the mean of its scores."""

    def __init__(self, posterior: SparsePosterior, score: Score, k: int, mc_steps: int) -> None:
        self.posterior, self.score, self.k, self.mc_steps = posterior, score, k, mc_steps
        self.open: WeakSet[_Use] = WeakSet()
        self.gradient: Tensor | None = None
        self.uses: list[tuple[Tensor, Geometry, Tensor]] = []
        self.total: Tensor | None = None
        self.passes = 0
        self.wanted: AdditionScores | None = None

    def watch(self, x: Tensor, y: Tensor, geometry: Geometry) -> None:
        """y = theta * x was computed."""
        if y.requires_grad:
            use = _Use()
            self.open.add(use)  # weakly: a graph that is thrown away without a backward pass takes its use with it
            x = x.detach()
            y.register_hook(lambda grad_y: self._hear(use, (x, geometry, grad_y)))

    def watch_weight(self, weight: Tensor) -> None:
        """A dense weight was handed out; its gradient is dl/dtheta itself."""
        if weight.requires_grad:
            use = _Use()
            self.open.add(use)
            weight.register_hook(lambda grad: self._hear_weight(use, grad))

    def _hear(self, use: _Use, heard: tuple[Tensor, Geometry, Tensor]) -> None:
        self.uses.append(heard)
        self._close(use)

    def _hear_weight(self, use: _Use, grad: Tensor) -> None:
        self.gradient = grad.clone() if self.gradient is None else self.gradient + grad
        self._close(use)

    @torch.no_grad()
    def _close(self, use: _Use) -> None:
        """A weight that is used several times has the sum of their gradients, so wait for the last one."""
        self.open.discard(use)
        if self.open:
            return
        gradient, self.gradient = self.gradient, None
        for x, geometry, grad_y in self.uses:
            part = geometry.weight_gradient(x.to(grad_y.dtype), grad_y)
            gradient = part if gradient is None else gradient.add_(part)
        self.uses.clear()
        assert gradient is not None
        self._keep(self.score(distributed.mean_(gradient).flatten()))

    def _keep(self, score: Tensor) -> None:
        """Criterion 3 is the mean of |gradient|, and its best k are known only after the last pass: for mc_steps > 1 the
        running sum of the layer is kept between passes. Otherwise the d scores end here."""
        if score.shape != (self.posterior.d,):
            raise ValueError(f"addition: scores of shape {tuple(score.shape)} for {self.posterior.d} weights")
        if torch.isnan(score).any():
            raise FloatingPointError(
                "addition: NaN in the gradient of a batch that an update of gamma listens to; nothing was changed. "
                "Lower the learning rate, clip gradients, or look for NaN in the input"
            )
        if self.mc_steps > 1:
            self.total = score if self.total is None else self.total.add_(score)
            self.passes += 1
        else:
            self.wanted = want(score, self.posterior.index, self.k)

    def result(self) -> AdditionScores | None:
        """What was heard, or None."""
        if self.total is not None:
            return want(self.total / self.passes, self.posterior.index, self.k)
        return self.wanted


class _Use:
    """One use of a layer whose gradient has not come yet."""


def want(score: Tensor, index: Tensor, k: int) -> AdditionScores:
    """Reduce d scores, which are overwritten, to the live ones and the k best of the absent ones."""
    live = score.index_select(0, index)
    chosen = top_k(score.index_fill_(0, index.long(), -torch.inf), k)
    return AdditionScores(live, chosen, score.index_select(0, chosen))


def top_k(score: Tensor, k: int) -> Tensor:
    """The positions of the k largest scores, increasing; of equal scores the lower position wins."""
    if select.can_top_k(score):
        return select.top_k(score, k)
    if k == 0:
        return torch.empty(0, dtype=torch.long, device=score.device)
    last = torch.topk(score, k, sorted=True).values[-1]
    above = (score > last).nonzero().flatten()
    level = (score == last).nonzero().flatten()[: k - above.numel()]
    return torch.cat([above, level]).sort().values
