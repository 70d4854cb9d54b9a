"""Dense variational inference by natural gradients: Shen et al., "Variational Learning is Effective for Large Deep
Networks", ICML 2024 (IVON).

The posterior and the optimiser of SSVI at density 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ssvi.methods import common, natural, searches
from ssvi.methods.base import About
from ssvi.methods.job import Job
from ssvi.methods.natural import NaturalGradients

ABOUT = About(
    "dense IVON", "variational inference by natural gradients at density 1", unit="none", aims_at_density=False,
    lr=natural.LR,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(NaturalGradients):
    """A Gaussian posterior on every weight, and its natural gradients."""


epochs = common.as_asked


def network(job: Job[Settings]) -> nn.Module:
    """A Gaussian posterior on every weight."""
    return natural.gaussian(job.settings, job.fresh(), 1.0)


loss = natural.loss
optimizer = natural.optimizer
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.NATURAL
