"""Static sparse training: a sparse point estimate on a random support that never changes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Allocation, Conversion, Descent, Support
from ssvi.methods.job import Job
from ssvi.methods.settings import word_or_number
from ssvi.nn.convert import to_bnn

ABOUT = About("static sparse", "sparse point estimate on a fixed random support", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Descent, Conversion, Allocation, Support):
    """Gradient descent on a sparse support."""


epochs = common.as_asked


def network(job: Job[Settings]) -> nn.Module:
    """Sparse points at the density of the recipe."""
    settings, net = job.settings, job.fresh()
    return to_bnn(
        net, settings.density, keep_dense=common.dense_names(settings, net), skip=settings.skip,
        allocation=settings.allocation, support=settings.support, mu_init=word_or_number(settings.mu_init),
        structure=settings.structure, point=True,
    )  # fmt: skip


loss = common.plain_nll
optimizer = common.descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.POINT
