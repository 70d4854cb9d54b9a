"""Which parameters of a plain network are random in a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from ssvi.nn.bayes_layer import slot
from ssvi.nn.kinds import kind_of
from ssvi.nn.layers import use_name
from ssvi.training.model_header import ModelFileError, StoredPosterior


@dataclass(frozen=True)
class RandomParameters:
    """What a file says of a plain network: which of its parameters are random."""

    keys: dict[str, str]
    """The name in the file of the means of each; of tied ones only the first is in the file."""
    own: dict[type[nn.Module], tuple[str, ...]]
    """The user's own layers, with their random parameters."""
    skipped: tuple[str, ...]
    """The layers that could be converted and were not."""


def random_parameters(plain: nn.Module, posteriors: Mapping[str, StoredPosterior]) -> RandomParameters:
    """Compare a plain network with the posteriors of a file."""
    keys: dict[str, str] = {}
    own: dict[type[nn.Module], tuple[str, ...]] = {}
    deterministic: dict[str, nn.Module] = {}
    for name, module in plain.named_modules():
        kind = kind_of(module, {})
        random = tuple(p for p in module._parameters if use_name(name, p) in posteriors)
        keys |= {use_name(name, parameter): state_key(name, parameter, "mu") for parameter in random}
        if not random:
            deterministic[name] = module
        elif kind is None or set(kind.random) != set(random):
            own[type(module)] = random
    skipped = tuple(name for name, module in deterministic.items() if kind_of(module, own))
    if missing := set(posteriors) - keys.keys():
        raise ModelFileError(
            f"the file has Bayesian layers that this network does not have: {', '.join(sorted(missing))}"
        )
    return RandomParameters(keys, own, skipped)


def state_key(layer: str, parameter: str, tensor: str) -> str:
    """The name of a tensor of a posterior in a state_dict."""
    return f"{layer}.{slot(parameter)}.{tensor}".removeprefix(".")
