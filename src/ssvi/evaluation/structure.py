"""The weights of a network, each once: those with a posterior, and those of layers that are deterministic."""

from __future__ import annotations

from torch import Tensor, nn

from ssvi.inference.predict import Mixture
from ssvi.nn.layers import TWINS, layers
from ssvi.nn.sparse import SparsePosterior


def last_network(net: nn.Module) -> nn.Module:
    """The last network of a mixture; any other network is itself."""
    return net.members[-1] if isinstance(net, Mixture) else net


def network_count(net: nn.Module) -> int:
    """How many networks a mixture has; any other network is one."""
    return len(net.members) if isinstance(net, Mixture) else 1


def distinct_posteriors(net: nn.Module) -> list[SparsePosterior]:
    """Every posterior once, also where layers share it; none in a deterministic network."""
    return list(dict.fromkeys(layer.posterior for _, layer in layers(net)))


def deterministic_weight(module: nn.Module) -> Tensor | None:
    """The weight of a Linear or Conv layer of torch; None for all other modules."""
    weight = module.weight if type(module) in TWINS else None
    return weight if isinstance(weight, Tensor) else None


def deterministic_weights(net: nn.Module) -> list[Tensor]:
    """The weights of the layers that stayed deterministic, each once, also where layers share it."""
    weights = [weight for module in net.modules() if (weight := deterministic_weight(module)) is not None]
    return list({id(weight): weight for weight in weights}.values())
