"""Mocanu, Mocanu, Stone, Nguyen, Gibescu, Liotta: "Scalable training of artificial neural networks with adaptive sparse
connectivity inspired by network science", Nature Communications 2018 (SET): a sparse point estimate that grows at random.
"""

from __future__ import annotations

from torch import nn
from torch.optim import Optimizer

from ssvi.methods import common, rigl, static
from ssvi.methods.base import About
from ssvi.methods.job import AfterStep, Job, Loss

ABOUT = About("SET", "sparse point estimate, grown at random", unit="weight", aims_at_density=True)

Settings = rigl.Settings
epochs = common.as_asked
network = static.network
loss = common.plain_nll
optimizer = common.descent


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Remove the smallest weights, add others at random."""
    return common.update_gamma(job, net, optimizer, removal="abs_mu", addition="random")


end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.POINT_TRIALS
