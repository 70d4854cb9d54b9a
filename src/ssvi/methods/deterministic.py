"""Plain training: a dense point estimate, by gradient descent with weight decay."""

from __future__ import annotations

from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Descent

ABOUT = About("deterministic", "dense point estimate", unit="none", aims_at_density=False)

Settings = Descent
epochs = common.as_asked
network = common.plain_network
loss = common.plain_nll
optimizer = common.descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.POINT
