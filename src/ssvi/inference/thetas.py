"""The thetas of a prediction: how many, which ones, and with which statistics of BatchNorm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from ssvi.errors import UserError
from ssvi.nn.at_theta import at_theta
from ssvi.nn.random_tensor import Draw, drawn, is_random, opposite, pinned_at, random_tensors
from ssvi.nn.theta_statistics import Fitted, fitted

Theta = AbstractContextManager[None]
"""Inside, the network has one theta."""

MEMBER_STRIDE = 9_999_991
"""Between the seeds of two members of a mixture."""


class SamplesError(UserError, ValueError):
    """More samples of theta than BatchNorm has statistics for."""


def drawn_thetas(net: nn.Module, samples: int, local: bool, generator: torch.Generator | None) -> Iterable[Theta]:
    """The thetas of a prediction: draws of the whole network, or of what is not pinned already.

    With `local=True` each of them is random still, so that every activation has its own noise.
    """
    if not is_random(net):
        return (nullcontext(),)
    if local:
        return (nullcontext() for _ in range(samples))
    statistics = {} if generator is not None else _fitted_where_all_is_random(net)
    if statistics:
        return numbered_thetas(net, samples, statistics)
    return _draws(net, samples, generator)


def seeded_thetas(net: nn.Module, samples: int, seed: int) -> Iterable[Theta]:
    """The same thetas in every call with the same seed."""
    if not is_random(net):
        return (nullcontext(),)
    if statistics := _fitted_where_all_is_random(net):
        return numbered_thetas(net, samples, statistics, seed)
    device = next((p.device for p in net.parameters()), torch.device("cpu"))
    return _draws(net, samples, torch.Generator(device).manual_seed(seed))


def member_seed(seed: int, number: int) -> int:
    """The seed of a member of a mixture, so that no two members share their noise; the first one has the seed itself."""
    return (seed + MEMBER_STRIDE * number) % 2**63 if number else seed


def numbered_thetas(bnn: nn.Module, samples: int, statistics: Fitted, seed: int = 0) -> Iterator[Theta]:
    """`samples` of the K thetas of `fit_batchnorm`. Seed 0 takes the first ones, seed 1 those after them, and so on.

    After the last of the K comes the first, so the sets of two seeds are different ones while K allows it.
    """
    known = next(iter(statistics.values())).samples
    if samples > known:
        raise SamplesError(
            f"samples={samples} are more than the {known} thetas that BatchNorm has statistics for: take at most {known}, "
            f"or compute more by fit_batchnorm(bnn, batches, samples={samples}), or by a run with samples = {samples}"
        )
    return (at_theta(bnn, (seed * samples + n) % known, statistics) for n in range(samples))


def _draws(net: nn.Module, samples: int, generator: torch.Generator | None) -> Iterator[Theta]:
    """In opposite pairs: what is linear in theta - mu cancels in their mean, and each alone is a draw from q."""
    free = [tensor for tensor in random_tensors(net) if tensor.theta is None]
    theta: Draw = {}
    for number in range(samples):
        theta = opposite(theta, generator) if number % 2 else drawn(free, generator)
        yield pinned_at(theta)


def _fitted_where_all_is_random(net: nn.Module) -> Fitted:
    """The statistics of `fit_batchnorm`, which are for thetas of the whole network."""
    some_pinned = any(tensor.spreads and tensor.theta is not None for tensor in random_tensors(net))
    return {} if some_pinned else fitted(net)
