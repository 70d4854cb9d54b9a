"""The training of an estimator: one step after the other, by `IVON` and `Subspace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ssvi.estimators.examples import Examples
from ssvi.estimators.pace import Pace
from ssvi.inference.ivon import IVON
from ssvi.inference.ivon_settings import b2_with_memory
from ssvi.inference.subspace import Subspace
from ssvi.likelihoods import Likelihood
from ssvi.nn.layers import posteriors

LR = 0.1
"""Of `IVON`: a third of its default, which small noise makes unsteady, most of all a noise that is predicted."""
MOMENTUM = 0.9
"""b1 of `IVON`, its default."""

CLIP_RADIUS, MOST_GRADIENT = 1.0, 1.0
"""No step of a weight is longer than lr times the first; no gradient of biases and of a learnt noise is longer than the
second. Trainings that go well stay below both. A noise of 1 % of y makes gradients 10,000 times as large: they would diverge
without these bounds."""


class Trainer:
    """A Bayesian network with the optimiser and the updates of gamma that train it.

    Args:
        bnn: the network; it is trained in place.
        likelihood: of its outputs.
        pace: of the learning rate and of the updates of gamma.
        train_size: the number of examples in the bound, or the sum of their weights.
        lr: of `IVON`; None is `LR`.
        every: steps between two updates of gamma.
    """

    def __init__(
        self, bnn: nn.Module, likelihood: Likelihood, pace: Pace, train_size: float, lr: float | None, every: int
    ) -> None:
        self.bnn, self.likelihood, self.pace, self.steps = bnn, likelihood, pace, 0
        betas = (MOMENTUM, b2_with_memory(pace.memory))
        self._optimizer = IVON(
            bnn, LR if lr is None else lr, train_size=train_size, warmup=0, betas=betas, clip_radius=CLIP_RADIUS,  # type: ignore[arg-type]
        )  # fmt: skip
        self._rest = [p for group in self._optimizer.param_groups if group["kind"] == "rest" for p in group["params"]]
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        sparse = any(posterior.s < posterior.d for posterior in posteriors(bnn).values())
        self._subspace = Subspace(bnn, self._optimizer, every=every, rate=pace.rate) if sparse else None

    def step(self, batch: Examples) -> None:
        """One step of the loop in the README."""
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * self.pace.lr_factor(self.steps)
        with self._optimizer.sampled():
            self.likelihood.nll(self.bnn(batch.x), batch.y, batch.weight).backward()
        nn.utils.clip_grad_norm_(self._rest, MOST_GRADIENT)
        self._optimizer.step()
        if self._subspace is not None:
            self._subspace.step()
        self.steps += 1

    def finish(self) -> dict[str, Any]:
        """Leave the network to predictions, and return what another trainer of it needs to go on.

        Scores for an update of gamma that has not come yet are dropped.
        """
        subspace = None if self._subspace is None else self._subspace.state_dict() | {"sums": {}}
        for posterior in posteriors(self.bnn).values():
            posterior.listener = None
        return {"steps": self.steps, "optimizer": self._optimizer.state_dict(), "subspace": subspace}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there, at the pace and with the number of examples that this trainer has."""
        self.steps = state["steps"]
        self._optimizer.load_state_dict(state["optimizer"])
        if self._subspace is not None:
            self._subspace.load_state_dict(state["subspace"])
