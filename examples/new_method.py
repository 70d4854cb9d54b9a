"""Magnitude pruning as a method of your own: a dense network is trained, and in the end its largest weights are kept.

PYTHONPATH=examples ssvi train digits --method new_method --density 0.2
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.methods import common, searches
from ssvi.methods.base import MEMBERS, About
from ssvi.methods.groups import Descent, Support
from ssvi.methods.job import Training
from ssvi.nn.conversion_rules import convertible, matching
from ssvi.nn.reach import sparsified
from ssvi.structures.selection import top_k

ABOUT = About("magnitude pruning", "dense point estimate, pruned by |w|", unit="weight", aims_at_density=True)


@dataclass(frozen=True)
class Settings(Descent, Support):
    """Gradient descent, and how many weights are kept."""


epochs = common.as_asked
network = common.plain_network
loss = common.plain_nll
optimizer = common.descent
after_step = common.nothing_after_step
end_of_epoch = resume = common.no_event


def product(training: Training[Settings]) -> nn.Module:
    """The network with the largest weights of every layer, on the sparse kernels."""
    settings, net = training.job.settings, training.net
    layers = convertible(net)
    dense = matching(layers, common.dense_names(settings, net), "keep_dense")
    density = {name: 1.0 if name in dense else settings.density for name in layers}
    masks = {name: largest(layer.weight, density[name]) for name, layer in layers.items()}
    return common.with_statistics(training.job, sparsified(net, masks))


def largest(weight: Tensor, density: float) -> Tensor:
    """The mask of the round(density d) largest |w|."""
    magnitude = weight.detach().abs().flatten()
    mask = torch.zeros_like(magnitude, dtype=torch.bool)
    mask[top_k(magnitude, max(1, round(density * magnitude.numel())))] = True
    return mask.view_as(weight)


SEARCH = searches.POINT

assert set(MEMBERS) <= set(globals()), "a method has all members"
