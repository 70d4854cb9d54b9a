"""Dense variational inference: Graves, NeurIPS 2011; Kingma, Salimans, Welling, NeurIPS 2015 (local reparameterisation).

The layers, the bound and the optimiser of SSVI at density 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Bound, Family, SpreadDescent
from ssvi.methods.search import Search

ABOUT = About(
    "dense VI", "mean-field variational inference at density 1", unit="none", aims_at_density=False, is_dense_vi=True
)


@dataclass(frozen=True)
class Settings(Bound, SpreadDescent, Family):
    """A posterior on every weight, and its bound."""


epochs = common.as_asked
network = common.dense_family
loss = common.bound
optimizer = common.spread_descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = Search(
    searches.BAYESIAN,
    first=(
        searches.AUTHORS_OF_SSVI,
        {  # Ritter, Kukla, Zhang, Li 2021, ResNet-18 on CIFAR
            "optimizer": "adam", "lr": 1e-3, "beta_max": 1.0, "prior_sigma": 1.0, "sigma_init": 1e-4, "mu_init": "net",
            "warmup": 0.75,
        },
    ),
)  # fmt: skip
