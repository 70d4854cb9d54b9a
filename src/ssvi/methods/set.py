"""Mocanu, Mocanu, Stone, Nguyen, Gibescu, Liotta: "Scalable training of artificial neural networks with adaptive sparse
connectivity inspired by network science", Nature Communications 2018 (SET): a sparse point estimate that grows at random.
"""

from __future__ import annotations

from functools import partial

from ssvi.methods import common, rigl, static
from ssvi.methods.base import About

ABOUT = About("SET", "sparse point estimate, grown at random", unit="weight", aims_at_density=True)

Settings = rigl.Settings
epochs = common.as_asked
network = static.network
loss = common.plain_nll
optimizer = common.descent
after_step = partial(common.update_gamma, removal="abs_mu", addition="random")
end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.POINT_TRIALS
