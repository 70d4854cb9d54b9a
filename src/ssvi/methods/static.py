"""Static sparse training: a sparse point estimate on a random support that never changes."""

from __future__ import annotations

from ssvi.methods import common, sparse_point
from ssvi.methods.base import About

ABOUT = About("static sparse", "sparse point estimate on a fixed random support", unit="weight", aims_at_density=True)

Settings = sparse_point.PointSettings
epochs = common.as_asked
network = sparse_point.network
loss = common.plain_nll
optimizer = common.descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
TRIALS = common.POINT_TRIALS
