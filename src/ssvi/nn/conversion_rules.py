"""Which layers of a network `to_bnn` converts, and how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import cast

from torch import nn

from ssvi.nn.classes import Kind
from ssvi.nn.kinds import OwnLayers, check_own, is_linear_map, kind_of
from ssvi.nn.layers import use_name
from ssvi.nn.layout import InputsFirst, Rows
from ssvi.nn.reasons import NORMALISATION, check_plain, reason
from ssvi.nn.uses import Use

__all__ = ["NORMALISATION", "REASON", "Choice", "choose", "convertible", "matching"]

PlainLayer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
REASON = "_ssvi_reason"
"""Why a layer stayed deterministic: written on the layer, read by `summary`."""


@dataclass(frozen=True)
class Choice:
    """What is to become of each layer of a network."""

    weights: dict[nn.Parameter, list[Use]]
    """Each parameter to convert, with its uses (tied layers share one)."""
    dense: set[nn.Parameter]
    """Those of them that keep density 1."""
    reasons: dict[nn.Module, str]
    """The modules with parameters that stay deterministic, each with its reason."""


def choose(net: nn.Module, keep_dense: Sequence[str], skip: Sequence[str], own: OwnLayers) -> Choice:
    """Decide for every layer. `keep_dense` and `skip` are names or shell patterns of layers."""
    check_plain(net, "to_bnn")
    check_own(net, own)
    kinds = {m: kind for m in net.modules() if (kind := kind_of(m, own))}
    names = {name: m for name, m in net.named_modules() if m in kinds}
    skipped = {names[name] for name in matching(names, skip, "skip")}
    reasons = {m: why for m in net.modules() if (why := reason(m, kinds.get(m), m in skipped))}
    while tied := _ties(net, kinds, reasons):
        reasons |= tied
    weights = _weights({name: m for name, m in names.items() if m not in reasons}, kinds)
    if not weights:
        why = "; ".join(f"{type(m).__name__}: {r}" for m, r in reasons.items()) or "it has no layer with weights"
        raise ValueError(f"net has nothing to convert ({why}): give it a Linear or Conv1d-3d layer, or skip less")
    return Choice(weights, _dense(weights, names, keep_dense), reasons)


def convertible(net: nn.Module) -> dict[str, PlainLayer]:
    """The Linear and Conv layers of a plain network by name, and the subclasses of them that compute the same."""
    return {name: cast(PlainLayer, module) for name, module in net.named_modules() if is_linear_map(module)}


def _ties(net: nn.Module, kinds: dict[nn.Module, Kind], reasons: dict[nn.Module, str]) -> dict[nn.Module, str]:
    """The layers with a weight that a deterministic layer also uses: they must stay deterministic, or the tie breaks."""
    staying: dict[nn.Parameter, str] = {}
    orders: dict[nn.Parameter, set[bool]] = {}
    for name, module in net.named_modules():
        for parameter, p in module._parameters.items():
            if p is None:
                continue
            if module in reasons or module not in kinds or parameter not in kinds[module].random:
                staying[p] = name
            else:
                orders.setdefault(p, set()).add(isinstance(kinds[module].layout, InputsFirst))
    tied: dict[nn.Module, str] = {}
    for module, kind in kinds.items():
        for parameter in () if module in reasons else (module._parameters[name] for name in kind.random):
            if parameter in staying:
                tied[module] = f"tied to a weight of {staying[parameter] or 'the network'}, which stays deterministic"
            elif parameter is not None and len(orders[parameter]) > 1:
                tied[module] = "tied to a layer that keeps its weight in another order"
    return tied


def _weights(layers: dict[str, nn.Module], kinds: dict[nn.Module, Kind]) -> dict[nn.Parameter, list[Use]]:
    """Each parameter to convert, with its uses by name."""
    weights: dict[nn.Parameter, list[Use]] = {}
    for name, module in layers.items():
        kind = kinds[module]
        for parameter in kind.random:
            weight = module._parameters[parameter]
            assert weight is not None
            weights.setdefault(weight, []).append(Use(use_name(name, parameter), module, parameter, kind))
    return {weight: _alike(uses) for weight, uses in weights.items()}


def _alike(uses: list[Use]) -> list[Use]:
    """The uses with layouts that one posterior can serve: a row is padding only if it is for every layer."""
    if len({use.kind.layout for use in uses}) == 1:
        return uses
    padded = [isinstance(use.kind.layout, Rows) for use in uses]
    return [replace(u, kind=replace(u.kind, layout=Rows())) if p else u for u, p in zip(uses, padded, strict=True)]


def _dense(
    weights: dict[nn.Parameter, list[Use]], names: dict[str, nn.Module], keep_dense: Sequence[str]
) -> set[nn.Parameter]:
    """The weights that a pattern names, by their layer or by their own name."""
    layer_names = {module: name for name, module in names.items()}
    named: dict[str, set[nn.Parameter]] = {}
    for weight, uses in weights.items():
        for name in {name for use in uses for name in (use.name, layer_names[use.layer])}:
            named.setdefault(name, set()).add(weight)
    return {weight for name in matching(named, keep_dense, "keep_dense") for weight in named[name]}


def matching(names: Iterable[str], patterns: Sequence[str], argument: str, kind: str = "layer") -> list[str]:
    """The names of layers that any of the shell patterns matches; a pattern that matches none is an error.

    `argument` is the name of the caller's argument and `kind` what its layers are called, both for the message.
    """
    if isinstance(patterns, str):
        raise TypeError(f"{argument}={patterns!r} must be a sequence of names: write {argument}=({patterns!r},)")
    names = list(names)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(
                f"{argument} has a {type(pattern).__name__}, and takes names or shell patterns of {kind}s: "
                f"write {argument}=('name',) with names from net.named_modules()"
            )
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{argument}={pattern!r} matches no {kind}: there are {', '.join(filter(None, names))}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
