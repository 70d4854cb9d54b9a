"""The training of an estimator: one step after the other, by `IVON` and `Subspace`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ssvi.estimators.examples import Examples
from ssvi.estimators.pace import Pace
from ssvi.inference.ivon import IVON
from ssvi.inference.subspace import Subspace
from ssvi.likelihoods import Likelihood
from ssvi.nn.layers import posteriors

MOMENTUM = 0.9
"""b1 of `IVON`, its default."""


class Trainer:
    """A Bayesian network with the optimiser and the updates of gamma that train it.

    Args:
        bnn: the network; it is trained in place.
        likelihood: of its outputs.
        pace: of the learning rate and of the updates of gamma.
        train_size: the number of examples in the bound.
        lr: of `IVON`; None is its default.
        every: steps between two updates of gamma.
    """

    def __init__(
        self, bnn: nn.Module, likelihood: Likelihood, pace: Pace, train_size: float, lr: float | None, every: int
    ) -> None:
        self.bnn, self.likelihood, self.pace, self.steps = bnn, likelihood, pace, 0
        betas = (MOMENTUM, 1 - 1 / pace.memory)
        own = {} if lr is None else {"lr": lr}
        self._optimizer = IVON(bnn, train_size=train_size, betas=betas, **own)  # type: ignore[arg-type] # a sum of weights
        self._rates = [group["lr"] for group in self._optimizer.param_groups]
        sparse = any(posterior.s < posterior.d for posterior in posteriors(bnn).values())
        self._subspace = Subspace(bnn, self._optimizer, every=every, rate=pace.rate) if sparse else None

    def step(self, batch: Examples) -> None:
        """One step of the loop in the README."""
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * self.pace.lr_factor(self.steps)
        with self._optimizer.sampled():
            self.likelihood.nll(self.bnn(batch.x), batch.y, batch.weight).backward()
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
