"""Links: from the output of a network to what a prediction averages over theta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from ssvi.errors import UserError
from ssvi.inference.structures import Structure, mapped

Function = Callable[[Any], Structure]
Link = str | Function | Mapping[str, str | Function] | None


class LinkError(UserError, ValueError):
    """No link was named, or one that does not fit the output of the network."""


def softmax(logits: Tensor) -> Tensor:
    """Logits (batch, classes) -> probabilities of the classes, computed in float32 or better."""
    _check_classes(logits)
    return _wide(logits).softmax(-1)


def log_softmax(output: Any) -> Tensor:
    """The logarithm of `softmax`, also where that is 0 in float32."""
    logits = one_tensor(output)
    _check_classes(logits)
    return logits.log_softmax(-1)


def _check_classes(logits: Tensor) -> None:
    shape = tuple(logits.shape)
    if logits.dim() < 2 or shape[-1] == 1:
        raise LinkError(
            f"the network gives one output for each example, shape {shape}, and the softmax of one number is 1: "
            'predict(..., link="sigmoid") for two classes, predict(..., link="identity") for regression'
        )
    if logits.dim() > 2:
        raise LinkError(
            f"the network's output has shape {shape}, and the softmax needs (batch, classes): say which axis has the "
            "classes, predict(..., link=lambda y: y.softmax(1)) for (batch, classes, height, width), "
            "predict(..., link=lambda y: y.softmax(-1)) for (batch, tokens, classes)"
        )


def sigmoid(logits: Tensor) -> Tensor:
    """Logits -> probabilities of yes, one for each output, computed in float32 or better."""
    return _wide(logits).sigmoid()


def identity(y: Tensor) -> Tensor:
    """The output itself, for regression, in float32 or better."""
    return _wide(y)


def one_tensor(output: Any) -> Tensor:
    """The output itself, for a likelihood, in float32 or better."""
    if not isinstance(output, Tensor):
        described = _described(output, _named_parts(output))
        raise LinkError(
            f"the network gives {described}, and a likelihood needs one tensor: return that, or call it `logits`"
        )
    return _wide(output)


LINKS: dict[str, Callable[[Tensor], Tensor]] = {"softmax": softmax, "sigmoid": sigmoid, "identity": identity}
"""The links that have names."""


def linked(output: Any, link: Link) -> Structure:
    """What is averaged, from what a network returns. `docs/prediction.md` has the rules and examples."""
    parts = _named_parts(output)
    if isinstance(link, Mapping):
        return _each_by_its_own(parts, link)
    if parts is not None and isinstance(parts.get("logits"), Tensor):
        output = parts["logits"]
    if link is None and not isinstance(output, Tensor):
        raise LinkError(f"the network gives {_described(output, parts)}: say what is averaged, {_remedy(parts)}")
    function = _function("softmax" if link is None else link)
    if not isinstance(link, str):
        return function(output)
    return mapped(function, output if isinstance(output, Tensor) or parts is None else parts)


def _each_by_its_own(parts: Mapping[str, Any] | None, links: Mapping[str, str | Function]) -> Structure:
    """The parts that the links name, each by its own link."""
    missing = [name for name in links if parts is None or name not in parts]
    if parts is None or missing:
        known = "no names" if parts is None else f"only {', '.join(parts)}"
        raise LinkError(
            f"link names {', '.join(missing)}, and the network's output has {known}: take names that it has"
        )
    return {name: linked(parts[name], link) for name, link in links.items()}


def _named_parts(output: Any) -> dict[str, Any] | None:
    """The parts of an output with names: a dict, a dataclass or a named tuple. A part that is None is left out."""
    if isinstance(output, Mapping):
        parts = dict(output)
    elif is_dataclass(output):
        parts = {field.name: getattr(output, field.name) for field in fields(output)}
    elif isinstance(output, tuple) and type(output) is not tuple:
        parts = dict(zip(getattr(output, "_fields", ()), output, strict=False))
    else:
        return None
    return {name: part for name, part in parts.items() if part is not None}


def _function(link: str | Function) -> Function:
    if callable(link):
        return link
    if link not in LINKS:
        raise LinkError(f"link={link!r} is unknown: take one of {', '.join(LINKS)}, or a function of the output")
    return LINKS[link]


def _described(output: Any, parts: Mapping[str, Any] | None) -> str:
    return f"{type(output).__name__}" + ("" if parts is None else f" with {', '.join(parts)}")


def _remedy(parts: Mapping[str, Any] | None) -> str:
    if not parts:
        return 'link="identity" for each tensor, or link=lambda output: output[0].softmax(-1)'
    example = ", ".join(f'"{name}": "identity"' for name in parts)
    return f'link={{{example}}}, or "softmax" or "sigmoid" for each'


def _wide(y: Tensor) -> Tensor:
    if not y.is_floating_point():
        raise LinkError(
            f"the output has dtype {y.dtype}, which has no average: name the other parts of the output in link"
        )
    return y.to(torch.promote_types(y.dtype, torch.float32))
