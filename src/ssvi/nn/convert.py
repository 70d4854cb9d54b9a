"""From a user's network to a Bayesian one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ssvi import allocation as allocations
from ssvi.nn.conversion_rules import NORMALISATION, REASON, Choice, choose
from ssvi.nn.layers import TWINS
from ssvi.nn.posterior import SIGMA_MAPS, SparseGaussian, SparsePoint
from ssvi.nn.sparse import SparsePosterior

__all__ = ["NORMALISATION", "REASON", "become_bayesian", "to_bnn"]

Net = TypeVar("Net", bound=nn.Module)


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
    gaussian = partial(SparseGaussian, prior_sigma=prior_sigma, sigma_init=sigma_init, sigma_map=sigma_map)
    generator = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)
    bnn = _copy(net)
    choice = choose(bnn, keep_dense, skip)
    counts = _counts(choice, density, allocations.resolve(allocation))
    _convert(choice, counts, SparsePoint if point else gaussian, partial(_start, mu_init=mu_init, generator=generator))
    return bnn


def become_bayesian(layer: nn.Module, posterior: SparsePosterior) -> None:
    """Give a torch layer a posterior in place of its weight; it stays the same object."""
    del layer._parameters["weight"]
    layer.__class__ = TWINS[type(layer)]
    layer.posterior = posterior


def _convert(
    choice: Choice,
    counts: dict[nn.Parameter, int],
    make: Callable[[tuple[int, ...], Tensor, Tensor], SparsePosterior],
    start: Callable[[Tensor, int], tuple[Tensor, Tensor]],
) -> None:
    """Give the layers of each weight one posterior, and the others the reason why they stay as they are."""
    for weight, users in choice.weights.items():
        posterior = make(tuple(weight.shape), *start(weight, counts[weight]))
        for layer in users.values():
            become_bayesian(layer, posterior)
    for module, reason in choice.reasons.items():
        setattr(module, REASON, reason)


def _copy(net: Net) -> Net:
    try:
        return copy.deepcopy(net)
    except Exception as error:
        raise ValueError(
            f"net cannot be copied, and to_bnn leaves the original untouched ({error}); for pruning and weight_norm "
            "hooks call torch.nn.utils.prune.remove or remove_weight_norm first"
        ) from error


def _counts(choice: Choice, density: float, allocate: allocations.Allocation) -> dict[nn.Parameter, int]:
    """s for each weight: all of a dense one, and what `allocate` gives to a sparse one, at least one."""
    sparse = {w: next(iter(users)) for w, users in choice.weights.items() if w not in choice.dense}
    counts = allocate([tuple(w.shape) for w in sparse], density) if sparse else []
    for (weight, name), s in zip(sparse.items(), counts, strict=True):
        if not 1 <= s <= weight.numel():
            raise ValueError(
                f"density={density} leaves layer {name!r} with s={s} of {weight.numel()} weights: "
                f"raise density, or name the layer in keep_dense or skip"
            )
    return dict(zip(sparse, counts, strict=True)) | {w: w.numel() for w in choice.dense}


def _start(weight: Tensor, s: int, mu_init: str | float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A random sorted support of s positions, and mu on it."""
    index = torch.randperm(weight.numel(), generator=generator)[:s].sort().values.to(weight.device)
    if isinstance(mu_init, str):
        return index, weight.detach().flatten()[index].clone()
    noise = torch.randn(s, generator=generator, dtype=weight.dtype)
    return index, mu_init * noise.to(weight.device)


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
