"""Evci, Gale, Menick, Castro, Elsen: "Rigging the Lottery: Making All Tickets Winners", ICML 2020 (RigL): a sparse point
estimate that grows where the gradient is large.

SSVI with a point in place of the Gaussian: removal by |mu|, addition by the absolute gradient.
"""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from ssvi.methods import common, sparse_point
from ssvi.methods.base import About
from ssvi.methods.job import AfterStep, Job, Loss

ABOUT = About("RigL", "sparse point estimate, grown by gradients", unit="weight", aims_at_density=True)

Settings = sparse_point.GrowingPoint
epochs = common.as_asked
network = sparse_point.network
loss = common.plain_nll
optimizer = common.descent


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Remove the smallest weights, add where the gradient is largest."""
    return common.update_gamma(job, net, optimizer, removal="abs_mu", addition="sample")


end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.POINT_TRIALS
