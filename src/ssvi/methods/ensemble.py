"""Lakshminarayanan, Pritzel, Blundell: "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
NeurIPS 2017: several dense point estimates, each trained from weights of its own, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ssvi.methods import deterministic, members, states
from ssvi.methods.base import About
from ssvi.methods.groups import Descent, Members
from ssvi.methods.search import Search

ABOUT = About(
    "ensemble", "several dense point estimates", unit="none", aims_at_density=False, keeps_states=True,
    tuned_like="deterministic", members_by="deterministic", fixed_epochs=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Members, Descent):
    """Those of plain training, and the number of networks."""


epochs = members.member_epochs
network = deterministic.network
loss = deterministic.loss
optimizer = deterministic.optimizer
after_step = deterministic.after_step
end_of_epoch = partial(members.next_member, method=deterministic)
resume = states.forget_later
product = states.mixture
SEARCH = Search()
