"""Dense variational inference: Graves, NeurIPS 2011; Kingma, Salimans, Welling, NeurIPS 2015 (local reparameterisation).

The layers, the bound and the optimiser of SSVI at density 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.methods import common
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, Posterior, SpreadDescent

ABOUT = About(
    "dense VI", "mean-field variational inference at density 1", unit="none", aims_at_density=False, is_dense_vi=True
)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent, Posterior):
    """A Gaussian posterior on every weight, and its bound."""


epochs = common.as_asked
network = common.dense_gaussian
loss = common.bound
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.BAYESIAN_TRIALS
