"""Which layers of a network `to_bnn` converts, and why the others stay deterministic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import cast

from torch import nn

from ssvi.nn.layers import TWINS, BayesLayer

PlainLayer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
NORMALISATION = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)
REASON = "_ssvi_reason"
"""Why a layer stayed deterministic: written on the layer, read by `summary`."""


@dataclass(frozen=True)
class Choice:
    """What is to become of each layer of a network."""

    weights: dict[nn.Parameter, dict[str, nn.Module]]
    """Each weight to convert, with the layers that use it by name (tied layers share one)."""
    dense: set[nn.Parameter]
    """Those of them that keep density 1."""
    reasons: dict[nn.Module, str]
    """The modules with parameters that stay deterministic, each with its reason."""


def choose(net: nn.Module, keep_dense: Sequence[str], skip: Sequence[str]) -> Choice:
    """Decide for every layer. Both arguments are names or shell patterns of layers."""
    reasons = _reasons(net, skip)
    weights = _weights(net, reasons)
    weight_of = {name: weight for weight, users in weights.items() for name in users}
    dense = {weight_of[name] for name in matching(weight_of, keep_dense, "keep_dense")}
    return Choice(weights, dense, reasons)


def convertible(net: nn.Module) -> dict[str, PlainLayer]:
    """The Linear and Conv layers of a plain network by name: those that have a Bayesian twin, and no subclass of them."""
    return {name: cast(PlainLayer, module) for name, module in net.named_modules() if type(module) in TWINS}


def _reasons(net: nn.Module, skip: Sequence[str]) -> dict[nn.Module, str]:
    layers = convertible(net)
    skipped = {layers[name] for name in matching(layers, skip, "skip")}
    reasons: dict[nn.Module, str] = {}
    for name, module in net.named_modules():
        if reason := _reason(name, module, module in skipped):
            reasons[module] = reason
    return reasons | _ties(net, reasons)


def _reason(name: str, module: nn.Module, skipped: bool) -> str | None:
    own = [p for p in module._parameters.values() if p is not None]
    kind = type(module).__name__
    if isinstance(module, BayesLayer):
        raise ValueError(f"net is Bayesian already: {name or 'it'} is a {kind}; pass the plain network to to_bnn")
    if type(module) in TWINS:
        return _reason_of_convertible(module, skipped)
    if not own:
        return None
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in own):
        return "its size is not known yet: run a batch through the network before to_bnn"
    if isinstance(module, NORMALISATION):
        return "normalisation stays deterministic"
    if isinstance(module, tuple(TWINS)):
        return (
            f"{kind} is a subclass that may compute something else: only torch's own Linear and Conv1d-3d are converted"
        )
    return f"{kind} is not a layer that can be converted"


def _reason_of_convertible(module: nn.Module, skipped: bool) -> str | None:
    weight = module._parameters.get("weight")
    if weight is None:
        return "its weight is computed by a hook (weight_norm, pruning)"
    if skipped:
        return "named in skip"
    if not weight.is_floating_point():
        return f"its weight is {weight.dtype}"
    if not weight.requires_grad:
        return "frozen: its weight does not require a gradient"
    return None


def _ties(net: nn.Module, reasons: dict[nn.Module, str]) -> dict[nn.Module, str]:
    """The layers whose weight a deterministic layer also uses: they must stay deterministic, or the tie would break."""
    staying: dict[nn.Parameter, str] = {}
    for name, module in net.named_modules():
        if module in reasons or type(module) not in TWINS:
            staying |= {p: name for p in module._parameters.values() if p is not None}
    tied: dict[nn.Module, str] = {}
    for module in convertible(net).values():
        weight = module._parameters.get("weight")
        if module not in reasons and weight in staying:
            tied[module] = f"tied to a weight of {staying[weight] or 'the network'}, which stays deterministic"
    return tied


def _weights(net: nn.Module, reasons: dict[nn.Module, str]) -> dict[nn.Parameter, dict[str, nn.Module]]:
    """Each weight to convert, with the layers that use it by name."""
    weights: dict[nn.Parameter, dict[str, nn.Module]] = {}
    for name, module in convertible(net).items():
        weight = module._parameters.get("weight")
        if module not in reasons and weight is not None:
            weights.setdefault(weight, {})[name] = module
    if not weights:
        why = "; ".join(f"{type(m).__name__}: {r}" for m, r in reasons.items()) or "it has no layer with weights"
        raise ValueError(f"net has nothing to convert ({why}): give it a Linear or Conv1d-3d layer, or skip less")
    return weights


def matching(names: Iterable[str], patterns: Sequence[str], argument: str, kind: str = "layer") -> list[str]:
    """The names of layers that any of the shell patterns matches; a pattern that matches none is an error.

    `argument` is the name of the caller's argument and `kind` what its layers are called, both for the message.
    """
    if isinstance(patterns, str):
        raise TypeError(f"{argument}={patterns!r} must be a sequence of names: write {argument}=({patterns!r},)")
    names = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{argument}={pattern!r} matches no {kind}: there are {', '.join(filter(None, names))}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
