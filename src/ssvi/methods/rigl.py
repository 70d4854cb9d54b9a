"""Evci, Gale, Menick, Castro, Elsen: "Rigging the Lottery: Making All Tickets Winners", ICML 2020 (RigL): a sparse point
estimate that grows where the gradient is large.

SSVI with a point in place of the Gaussian: removal by |mu|, addition by the absolute gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ssvi.methods import common, static
from ssvi.methods.base import About
from ssvi.methods.groups import Updates

ABOUT = About("RigL", "sparse point estimate, grown by gradients", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Updates, static.Settings):
    """Those of static sparse training, and the updates of the support."""


epochs = common.as_asked
network = static.network
loss = common.plain_nll
optimizer = common.descent
after_step = partial(common.update_gamma, removal="abs_mu", addition="sample")
end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.POINT_TRIALS
