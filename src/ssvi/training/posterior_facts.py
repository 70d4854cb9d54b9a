"""What a checkpoint says of posteriors besides their values: the live weights of each layer, and its prior.

Both follow from the recipe. But a later version may share the live weights among the layers in another way, or choose
another prior where the recipe says "fan-in", and a run goes on as it began.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread


def priors(net: nn.Module) -> dict[str, float]:
    """The prior of each Gaussian posterior by the name of its module."""
    return {name: m.prior_sigma for name, m in net.named_modules() if isinstance(m, SparseSpread)}


def take_over(net: nn.Module, state: Mapping[str, Tensor], priors: Mapping[str, float]) -> None:
    """Give the posteriors of `net` the priors, and the numbers of live weights that they have in `state`.

    The numbers are taken over only if they have the same sum. If not, the recipe has another density, which is an error
    that loading the state will name. The values are not loaded here.
    """
    posteriors = {name: m for name, m in net.named_modules() if isinstance(m, SparsePosterior)}
    for name, posterior in posteriors.items():
        if isinstance(posterior, SparseSpread):
            posterior.prior_sigma = priors.get(name, posterior.prior_sigma)  # earlier checkpoints have none
    counts = {name: state[f"{name}.mu"].numel() for name in posteriors if f"{name}.mu" in state}
    if sum(counts.values()) == sum(posterior.s for posterior in posteriors.values()):
        for name, s in counts.items():
            if s != posteriors[name].s:
                posteriors[name].make_room(s)
