"""From a user's network to a Bayesian one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ssvi import allocation as allocations
from ssvi.nn.layers import TWINS, BayesLayer
from ssvi.nn.posterior import SIGMA_MAPS, SparseGaussian, SparsePoint
from ssvi.nn.sparse import SparsePosterior

Net = TypeVar("Net", bound=nn.Module)

NORMALISATION = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)
REASON = "_ssvi_reason"
"""Why a layer stayed deterministic: written on the layer, read by `summary`."""


def to_bnn(
    net: Net,
    density: float,
    *,
    keep_dense: Sequence[str] = (),
    skip: Sequence[str] = (),
    allocation: str | allocations.Allocation = "uniform",
    prior_sigma: float = 0.1,
    sigma_init: float = 0.01,
    mu_init: str | float = "net",
    sigma_map: str = "exp",
    point: bool = False,
    seed: int | None = None,
) -> Net:
    """A new network like `net`, with a sparse Gaussian posterior on the weights of its Linear and Conv layers.

    `net` is untouched. Exactly `round(density * d)` of the d weights of the sparse layers live, chosen at random; their
    number per layer is fixed by `allocation`. `summary(bnn)` tells what became of each layer, and why.

    Args:
        net: any module. What cannot be converted stays as it is and works as it did.
        density: live weights / all weights of the sparse layers, in (0, 1].
        keep_dense: names or shell patterns of layers that are Bayesian at density 1 (the paper: the first convolution).
        skip: names or shell patterns of layers that stay deterministic.
        allocation: "uniform", "erk" or a function (shapes, density) -> live weights per layer.
        prior_sigma: the prior is N(0, prior_sigma^2) on each weight.
        sigma_init: every sigma starts here.
        mu_init: "net" starts mu at the network's own weights; a number is the standard deviation of a fresh Gaussian.
        sigma_map: "exp", in which sigma learns, or "softplus", the authors' choice.
        point: a point posterior in place of the Gaussian: the weights are sparse and not random (RigL, SET, static).
        seed: of the random support (and fresh mu); None takes torch's global generator.
    """
    _check_numbers(density, prior_sigma, sigma_init, mu_init, sigma_map)
    bnn = _copy(net)
    reasons = _reasons(bnn, skip)
    weights = _weights(bnn, reasons)
    dense, sparse = _split(weights, keep_dense)
    counts = _counts(sparse, density, allocations.resolve(allocation)) | {w: w.numel() for w in dense}
    start = _start(mu_init, seed)
    for weight, users in weights.items():
        where = (tuple(weight.shape), *start(weight, counts[weight]))
        posterior = (
            SparsePoint(*where)
            if point
            else SparseGaussian(*where, prior_sigma=prior_sigma, sigma_init=sigma_init, sigma_map=sigma_map)
        )
        for layer in users.values():
            become_bayesian(layer, posterior)
    for module, reason in reasons.items():
        setattr(module, REASON, reason)
    return bnn


def _copy(net: Net) -> Net:
    try:
        return copy.deepcopy(net)
    except Exception as error:
        raise ValueError(
            f"net cannot be copied, and to_bnn leaves the original untouched ({error}); for pruning and weight_norm "
            "hooks call torch.nn.utils.prune.remove or remove_weight_norm first"
        ) from error


def become_bayesian(layer: nn.Module, posterior: SparsePosterior) -> None:
    """Give a torch layer a posterior in place of its weight; it stays the same object."""
    del layer._parameters["weight"]
    layer.__class__ = TWINS[type(layer)]
    layer.posterior = posterior


def _reasons(net: nn.Module, skip: Sequence[str]) -> dict[nn.Module, str]:
    """The modules with parameters that stay deterministic, each with its reason."""
    convertible = {name: module for name, module in net.named_modules() if type(module) in TWINS}
    skipped = {convertible[name] for name in _matching(convertible, skip, "skip")}
    found: dict[nn.Module, str] = {}
    for name, module in net.named_modules():
        if reason := _reason(name, module, module in skipped):
            found[module] = reason
    return _with_their_ties(net, found)


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
        return f"{kind} is a subclass with its own ways: only torch's own Linear and Conv1d-3d are converted"
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


def _with_their_ties(net: nn.Module, reasons: dict[nn.Module, str]) -> dict[nn.Module, str]:
    """A weight that is also used by a layer that stays deterministic must stay too, or the tie would break."""
    staying: dict[nn.Parameter, str] = {}
    for name, module in net.named_modules():
        if module in reasons or type(module) not in TWINS:
            staying |= {p: name for p in module._parameters.values() if p is not None}
    tied = dict(reasons)
    for _, module in net.named_modules():
        weight = module._parameters.get("weight")
        if type(module) in TWINS and module not in reasons and weight in staying:
            tied[module] = f"tied to a weight of {staying[weight] or 'the network'}, which stays deterministic"
    return tied


def _weights(net: nn.Module, reasons: dict[nn.Module, str]) -> dict[nn.Parameter, dict[str, nn.Module]]:
    """Each weight to convert, with the layers that use it by name."""
    found: dict[nn.Parameter, dict[str, nn.Module]] = {}
    for name, module in net.named_modules():
        weight = module._parameters.get("weight")
        if type(module) in TWINS and module not in reasons and weight is not None:
            found.setdefault(weight, {})[name] = module
    if not found:
        why = "; ".join(f"{type(m).__name__}: {r}" for m, r in reasons.items()) or "it has no layer with weights"
        raise ValueError(f"net has nothing to convert ({why}): give it a Linear or Conv1d-3d layer, or skip less")
    return found


def _split(
    weights: dict[nn.Parameter, dict[str, nn.Module]], keep_dense: Sequence[str]
) -> tuple[list[nn.Parameter], dict[nn.Parameter, str]]:
    """The weights that stay at density 1, and the sparse ones with a name."""
    names = {name: weight for weight, users in weights.items() for name in users}
    dense = [names[name] for name in _matching(names, keep_dense, "keep_dense")]
    return dense, {w: next(iter(users)) for w, users in weights.items() if all(w is not k for k in dense)}


def _counts(
    sparse: dict[nn.Parameter, str], density: float, allocate: allocations.Allocation
) -> dict[nn.Parameter, int]:
    """s for each sparse weight; every layer has at least one."""
    counts = allocate([tuple(w.shape) for w in sparse], density) if sparse else []
    for (weight, name), s in zip(sparse.items(), counts, strict=True):
        if not 1 <= s <= weight.numel():
            raise ValueError(
                f"density={density} leaves layer {name!r} with s={s} of {weight.numel()} weights: "
                f"raise density, or name the layer in keep_dense or skip"
            )
    return dict(zip(sparse, counts, strict=True))


def _start(mu_init: str | float, seed: int | None) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
    """(weight, s) -> a random sorted support and mu on it."""
    generator = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)

    def start(weight: Tensor, s: int) -> tuple[Tensor, Tensor]:
        index = torch.randperm(weight.numel(), generator=generator)[:s].sort().values.to(weight.device)
        if isinstance(mu_init, str):
            return index, weight.detach().flatten()[index].clone()
        noise = torch.randn(s, generator=generator, dtype=weight.dtype)
        return index, mu_init * noise.to(weight.device)

    return start


def _matching(names: Iterable[str], patterns: Sequence[str], argument: str) -> list[str]:
    """The names that any of the patterns matches; a pattern that matches none is a mistake."""
    if isinstance(patterns, str):
        raise TypeError(f"{argument}={patterns!r} must be a sequence of names: write {argument}=({patterns!r},)")
    names = list(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ValueError(f"{argument}={pattern!r} matches no layer: there are {', '.join(filter(None, names))}")
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _check_numbers(density: Any, prior_sigma: float, sigma_init: float, mu_init: str | float, sigma_map: str) -> None:
    if not 0 < density <= 1:
        raise ValueError(f"density={density!r} must be in (0, 1]: 0.05 keeps 5 % of the weights (95 % sparsity)")
    if not prior_sigma > 0:
        raise ValueError(f"prior_sigma={prior_sigma!r} must be positive: it is the prior's standard deviation")
    if not sigma_init > 0:
        raise ValueError(f"sigma_init={sigma_init!r} must be positive: the gradient of sigma vanishes at 0")
    if mu_init != "net" and (isinstance(mu_init, str) or not mu_init >= 0):
        raise ValueError(f"mu_init={mu_init!r} must be 'net' or the standard deviation of a fresh Gaussian")
    if sigma_map not in SIGMA_MAPS:
        raise ValueError(f"sigma_map={sigma_map!r} is unknown: take one of {', '.join(SIGMA_MAPS)}")
