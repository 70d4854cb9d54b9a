"""Evci, Gale, Menick, Castro, Elsen: "Rigging the Lottery: Making All Tickets Winners", ICML 2020 (RigL): a sparse point
estimate that grows where the gradient is large.

SSVI with a point in place of the Gaussian: removal by |mu|, addition by the absolute gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer

from ssvi.methods import common, searches, static
from ssvi.methods.base import About
from ssvi.methods.groups import Growth
from ssvi.methods.job import AfterStep, Job, Loss

ABOUT = About("RigL", "sparse point estimate, grown by gradients", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Growth, static.Settings):
    """Those of static sparse training, and the updates of the support."""


epochs = common.as_asked
network = static.network
loss = common.plain_nll
optimizer = common.descent


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Updates of the support: the smallest weights leave; by default those with the largest gradient come in."""
    return common.update_gamma(job, net, optimizer, loss, removal="abs_mu", addition=job.settings.addition)


end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.POINT
