"""An ensemble of sparse posteriors: several networks trained by SSVI, one after the other, each from weights, a support, a
noise and an order of the data of its own.

A posterior spreads around one solution, and an ensemble has several solutions. Prediction averages over both: over the
members, and over thetas of each. At density 5 % five members have a quarter of the weights of one dense network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ssvi.methods import members, ssvi, states
from ssvi.methods.base import About
from ssvi.methods.groups import Members
from ssvi.methods.natural import LR
from ssvi.methods.search import Search

ABOUT = About(
    "SSVI ensemble", "several sparse posteriors by natural gradients", unit="weight", aims_at_density=True,
    keeps_states=True, lr=LR, tuned_like="ssvi", members_by="ssvi", fixed_epochs=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Members, ssvi.Settings):
    """Those of SSVI, and the number of networks."""


epochs = members.member_epochs
network = ssvi.network
loss = ssvi.loss
optimizer = ssvi.optimizer
after_step = ssvi.after_step
end_of_epoch = partial(members.next_member, method=ssvi)
resume = states.forget_later
product = states.mixture
SEARCH = Search()
