"""What RigL, SET and static sparse training share: a point posterior on a sparse support."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ssvi.methods import common
from ssvi.methods.groups import Allocation, Conversion, Descent, Support, Updates
from ssvi.methods.job import Job
from ssvi.methods.settings import word_or_number
from ssvi.nn.convert import to_bnn


@dataclass(frozen=True)
class PointSettings(Descent, Conversion, Allocation, Support):
    """A sparse point estimate on a support that stays."""


@dataclass(frozen=True)
class GrowingPoint(Updates, PointSettings):
    """A sparse point estimate, and the updates of its support."""


def network(job: Job[PointSettings]) -> nn.Module:
    """Sparse points at the density of the recipe."""
    settings, net = job.settings, job.fresh()
    return to_bnn(
        net, settings.density, keep_dense=common.dense_names(settings, net), skip=settings.skip,
        allocation=settings.allocation, mu_init=word_or_number(settings.mu_init), point=True,
    )  # fmt: skip
