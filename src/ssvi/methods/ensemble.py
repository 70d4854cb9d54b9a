"""Lakshminarayanan, Pritzel, Blundell: "Simple and Scalable Predictive Uncertainty Estimation using Deep Ensembles",
NeurIPS 2017: several dense point estimates, each trained from weights of its own, one after the other.

Each member also sees the data in its own order: the shuffles of the epochs go on from one member to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ssvi.methods import common, states
from ssvi.methods.base import About
from ssvi.methods.groups import MOST_MEMBERS, Descent
from ssvi.methods.job import Training
from ssvi.methods.search import Search
from ssvi.methods.settings import setting, whole

ABOUT = About(
    "ensemble", "several dense point estimates", unit="none", aims_at_density=False, keeps_states=True,
    tuned_like="deterministic", fixed_epochs=True,
)  # fmt: skip

SEED_STRIDE = 1_000_003
"""Between the seeds of two members: far enough that no two runs share one."""


@dataclass(frozen=True)
class Settings(Descent):
    """Those of plain training, and the number of networks."""

    members: int = setting(5, "networks of the ensemble", whole(1, MOST_MEMBERS))


def epochs(settings: Settings, epochs: int) -> int:
    """Every member is trained for as many epochs as the recipe says."""
    return epochs * settings.members


network = common.plain_network
loss = common.plain_nll
optimizer = common.descent
after_step = common.nothing_after_step


def end_of_epoch(training: Training[Settings], epoch: int) -> None:
    """Keep a member that is trained, and begin with the next."""
    job = training.job
    member, rest = divmod(epoch + 1, job.epochs)
    if rest == 0:
        job.states.keep(epoch, training.net)
        torch.manual_seed(job.seed + SEED_STRIDE * member)
        training.net.load_state_dict(job.fresh().state_dict())
        training.optimizer.state.clear()


resume = states.forget_later
product = states.mixture
SEARCH = Search()
