"""Warnings when little of a network becomes Bayesian, and when a layer has no weights yet."""

from __future__ import annotations

import warnings

from torch import nn

from ssvi.nn.conversion_rules import Choice
from ssvi.nn.reasons import UNSIZED, is_a_choice_of_the_user

HALF = 0.5
NAMED = 3
"""So many of the largest layers that stay deterministic are named."""


class ConversionWarning(UserWarning):
    """Less than half of the weights of a network have become Bayesian, or a layer had no weights yet."""


def warn_of_unsized_layers(net: nn.Module, choice: Choice) -> None:
    """Warn of layers without weights, such as `nn.LazyLinear` before its first batch."""
    unsized = [
        f"{name} ({type(module).__name__})"
        for name, module in net.named_modules()
        if choice.reasons.get(module) == UNSIZED
    ]
    if unsized:
        warnings.warn(
            f"{', '.join(unsized)} will not become Bayesian: {UNSIZED}, or name it in skip",
            ConversionWarning,
            stacklevel=3,
        )


def warn_if_little_is_bayesian(net: nn.Module, choice: Choice) -> None:
    """Warn if less than half of the weights become Bayesian, and name the largest layers that do not.

    Weights are parameters of two or more dimensions. Those that the user has frozen or named in `skip` do not count.
    """
    bayesian, staying = sum(weight.numel() for weight in choice.weights), _staying(net, choice)
    total = bayesian + sum(d for d, _, _ in staying)
    if bayesian >= HALF * total:
        return
    largest = "; ".join(f"{name or 'the network'} ({d:,}): {why}" for d, name, why in staying[:NAMED])
    warnings.warn(
        f"only {bayesian / total:.1%} of the {total:,} weights become Bayesian. The largest that do not: {largest}. "
        "ssvi.summary(bnn) has them all; name layers in skip if they are to stay deterministic",
        ConversionWarning,
        stacklevel=3,
    )


def _staying(net: nn.Module, choice: Choice) -> list[tuple[int, str, str]]:
    """Size, name and reason of the layers whose weights stay deterministic, the largest first; a tied weight once."""
    seen, staying = set(choice.weights), []
    for name, module in net.named_modules():
        why = choice.reasons.get(module)
        if why is None or is_a_choice_of_the_user(why):
            continue
        own = {p for p in module._parameters.values() if p is not None and _is_weight(p)} - seen
        seen |= own
        if d := sum(p.numel() for p in own):
            staying.append((d, name, why))
    return sorted(staying, key=lambda layer: -layer[0])


def _is_weight(parameter: nn.Parameter) -> bool:
    return not isinstance(parameter, nn.parameter.UninitializedParameter) and parameter.dim() > 1
