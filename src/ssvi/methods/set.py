"""Mocanu, Mocanu, Stone, Nguyen, Gibescu, Liotta: "Scalable training of artificial neural networks with adaptive sparse
connectivity inspired by network science", Nature Communications 2018 (SET): a sparse point estimate that grows at random.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ssvi.methods import common, searches, static
from ssvi.methods.base import About
from ssvi.methods.groups import Updates

ABOUT = About("SET", "sparse point estimate, grown at random", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Updates, static.Settings):
    """Those of static sparse training, and the updates of the support."""


epochs = common.as_asked
network = static.network
loss = common.plain_nll
optimizer = common.descent
after_step = partial(common.update_gamma, removal="abs_mu", addition="random")
end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.POINT
