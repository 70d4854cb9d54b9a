"""What ensembles share: their members are trained one after the other, each as another method trains its network."""

from __future__ import annotations

from typing import Any

import torch

from ssvi.inference import distributed
from ssvi.methods.base import Method, begin
from ssvi.methods.groups import Members
from ssvi.methods.job import Training

SEED_STRIDE = 1_000_003
"""Between the seeds of two members: far enough that no two runs share one."""


def member_epochs(settings: Members, epochs: int) -> int:
    """Every member is trained for as many epochs as the recipe says."""
    return epochs * settings.members


def next_member(training: Training[Any], epoch: int, method: Method) -> None:
    """Keep a member that is trained, and begin with the next, if there is one, as `method` begins a run, from its own seed.

    Weights, support and noise of a member come from that seed. The order of the data is its own too: the shuffles of the
    epochs go on from one member to the next.
    """
    job = training.job
    member, rest = divmod(epoch + 1, job.epochs)
    if rest == 0:
        job.states.keep(epoch, training.net)
    if rest == 0 and member < job.settings.members:
        seed = job.seed + SEED_STRIDE * member
        torch.manual_seed(seed)
        training.begin_again(begin(method, job, next(training.net.parameters()).device))
        distributed.seed_noise(seed)  # the noise of each process is its own
