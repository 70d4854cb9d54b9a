"""From a user's network to a Bayesian one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ssvi import allocation as allocations
from ssvi import families, structures
from ssvi.kernels.native.allocator import trim_malloc
from ssvi.nn.bayes_layer import become_bayesian
from ssvi.nn.classes import bayesian_class
from ssvi.nn.conversion_rules import NORMALISATION, REASON, Choice, choose
from ssvi.nn.conversion_warning import warn_if_little_is_bayesian, warn_of_unsized_layers
from ssvi.nn.followers import followed_by_normalisation
from ssvi.nn.layout import keep_padding_row
from ssvi.nn.live_counts import Live, live_counts, resolve_density
from ssvi.nn.posterior import SparseFamily, SparseGaussian, SparsePoint
from ssvi.nn.sigma_maps import SIGMA_MAPS
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.starts import FAN_IN, NET, Starts
from ssvi.nn.supports import RANDOM, Supports, supports
from ssvi.nn.uses import Use, layout_of, shape_by_output

__all__ = ["NORMALISATION", "REASON", "to_bnn"]

Net = TypeVar("Net", bound=nn.Module)

GAUSSIAN = "gaussian"
_MANY_WEIGHTS = 1 << 20


class Spread(NamedTuple):
    """How the live weights of a network are distributed about mu."""

    family: families.Family
    sigma_map: str


def to_bnn(
    net: Net,
    density: float | None = None,
    *,
    keep_dense: Sequence[str] = (),
    skip: Sequence[str] = (),
    layers: Mapping[type[nn.Module], Sequence[str]] | None = None,
    allocation: str | allocations.Allocation = "uniform",
    support: str | Mapping[str, Tensor] = RANDOM,
    structure: str | structures.Structure | None = None,
    prior_sigma: str | float = FAN_IN,
    sigma_init: str | float = FAN_IN,
    mu_init: str | float = FAN_IN,
    sigma_map: str = "exp",
    posterior: str | families.Family | type[families.Family] = GAUSSIAN,
    point: bool = False,
    seed: int | None = None,
) -> Net:
    """A new network like `net`, with a sparse posterior on the weights of its layers (docs/layers.md has all).

    `net` is untouched. Exactly `round(density * d)` of the d weights of the sparse layers live, chosen by `support`, with
    one in every output where there are enough; their number per layer is fixed by `allocation`. `summary(bnn)` tells what
    became of each layer, and why. The starts "fan-in" are per layer (`ssvi.nn.starts` has the formulas, docs/starts.md the
    reasons); a trained network at density 1 keeps its weights to the bit.

    Args:
        net: any module. What cannot be converted stays as it is and works as it did.
        density: live weights / all weights of the sparse layers, in (0, 1]. A structure "N:M" has the density N / M.
        keep_dense: names or shell patterns of layers that are Bayesian at density 1 (the paper: the first convolution).
        skip: names or shell patterns of layers that stay deterministic.
        layers: your own layers, {MyLayer: ("weight", "gate")}: the names of the parameters that become random, by class.
        allocation: "uniform", "erk" or a function (shapes, density) -> live weights per layer.
        support: which weights live at the start. "random"; for a trained network "magnitude", its largest ones, or a number
            for each weight by the name of its parameter, of which the largest live (`ssvi.curvature_importance`).
        structure: what lives together. "block:16", or `ssvi.structures.Blocks(16)`: 16 neighbouring outputs at one input;
            a layer has the nearest number of whole blocks. "2:4", or `NM(2, 4)`: 2 of every 4 inputs (docs/structure.md).
        prior_sigma: the prior is N(0, prior_sigma^2) on each weight. "fan-in": what the live weights per output ask for.
        sigma_init: every sigma starts here. "fan-in": a share of the size that weights of this fan-in have.
        mu_init: "fan-in" starts mu at the network's own weights, larger by sqrt(d / s) in sparse layers that no
            normalisation follows, unless `support` has chosen among trained weights; "net" at the weights as they are; a
            number is the standard deviation of a fresh Gaussian.
        sigma_map: "exp", in which sigma learns, or "softplus", the authors' choice.
        posterior: the family of the live weights. "gaussian", "laplace", "student-t" (or "student-t:3" with 3 degrees of
            freedom), or a value of `ssvi.families`. sigma is the standard deviation in each (docs/posteriors.md).
        point: a point posterior in place of the family: the weights are sparse and not random (RigL, SET, static).
        seed: of the random support (and fresh mu); None takes torch's global generator.
    """
    _check(net, sigma_map)
    family = _family(posterior, point)
    kind_of_support = structures.resolve(structure)
    density = resolve_density(density, kind_of_support)
    generator = torch.default_generator if seed is None else torch.Generator().manual_seed(seed)
    bnn = _copy(net)
    chosen = supports(bnn, support, generator)
    keeps_weights = chosen.importance is not None and mu_init == FAN_IN
    starts = Starts(prior_sigma, sigma_init, NET if keeps_weights else mu_init)
    choice = choose(bnn, keep_dense, skip, layers or {})
    warn_of_unsized_layers(bnn, choice)
    warn_if_little_is_bayesian(bnn, choice)
    lives = live_counts(choice, density, allocation, kind_of_support)
    make = partial(_posterior, starts, None if point else Spread(family, sigma_map), chosen)
    _convert(choice, lives, followed_by_normalisation(bnn), make)
    many = sum(weight.numel() for weight in choice.weights) >= _MANY_WEIGHTS
    del choice, lives  # the dense weights
    if many:
        trim_malloc()  # what was computed of them has left gaps of several times their size
    return bnn


def _convert(
    choice: Choice,
    lives: dict[nn.Parameter, Live],
    normalised: set[nn.Module],
    make: Callable[[nn.Parameter, list[Use], Live, bool], SparsePosterior],
) -> None:
    """Give the uses of each weight one posterior, and the other layers the reason why they stay as they are."""
    posteriors: dict[nn.Module, dict[str, SparsePosterior]] = {}
    kinds = {use.layer: use.kind for uses in choice.weights.values() for use in uses}
    for weight, uses in choice.weights.items():
        posterior = make(weight, uses, lives[weight], all(u.layer in normalised or u.kind.scale_free for u in uses))
        for use in uses:
            keep_padding_row(use.layer, use.kind.layout, weight)
            posteriors.setdefault(use.layer, {})[use.parameter] = posterior
    for layer, kind in kinds.items():
        become_bayesian(layer, bayesian_class(type(layer), kind), posteriors[layer])
    for module, reason in choice.reasons.items():
        setattr(module, REASON, reason)


def _posterior(
    starts: Starts,
    spread: Spread | None,
    supports: Supports,
    weight: nn.Parameter,
    uses: list[Use],
    live: Live,
    normalised: bool,
) -> SparsePosterior:
    """The posterior of a weight with these live positions: of a family, or without a spread a point."""
    layout, by_output = layout_of(uses), shape_by_output(weight, uses)
    theta = layout.theta(weight)
    shape, index = tuple(theta.shape), supports.index(weight, uses, live)
    mu = starts.mu(theta, index, normalised, supports.generator)
    if spread is None:
        return SparsePoint(shape, index, mu, live.units)
    prior_sigma, sigma_init = starts.spreads(by_output, mu, normalised, layout.sums)
    sigmas = {"prior_sigma": prior_sigma, "sigma_init": sigma_init}
    if isinstance(spread.family, families.Gaussian):
        return SparseGaussian(shape, index, mu, sigma_map=spread.sigma_map, units=live.units, **sigmas)
    return SparseFamily(shape, index, mu, family=spread.family, sigma_map=spread.sigma_map, units=live.units, **sigmas)


def _copy(net: Net) -> Net:
    try:
        return copy.deepcopy(net)
    except Exception as error:
        raise ValueError(
            f"net cannot be copied, and to_bnn leaves the original untouched ({error}); for pruning and weight_norm "
            "hooks call torch.nn.utils.prune.remove or remove_weight_norm first"
        ) from error


def _family(posterior: str | families.Family | type[families.Family], point: bool) -> families.Family:
    family = families.resolve(posterior)
    if point and not isinstance(family, families.Gaussian):
        raise ValueError(
            f"point=True and posterior={str(family)!r}: a point has no distribution, leave one of them out"
        )
    return family


def _check(net: object, sigma_map: str) -> None:
    if not isinstance(net, nn.Module):
        if isinstance(net, type):
            raise TypeError(f"net is the class {net.__name__} and not a network: make one, {net.__name__}(...)")
        raise TypeError(f"net is a {type(net).__name__} and not a network: pass a torch.nn.Module")
    if sigma_map not in SIGMA_MAPS:
        raise ValueError(f"sigma_map={sigma_map!r} is unknown: take one of {', '.join(SIGMA_MAPS)}")
