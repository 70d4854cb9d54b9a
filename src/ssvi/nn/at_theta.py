"""A network at one theta, its mean or a draw with a number, and with BatchNorm's statistics for that theta."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from ssvi.nn.random_tensor import Draw, drawn, opposite, pinned_at, pinned_at_mean, random_tensors
from ssvi.nn.statistics_in_use import in_use
from ssvi.nn.theta_statistics import Fitted, fitted

STRIDE = 1_000_003
"""Between the seeds of two thetas of one network."""


def theta_generator(seed: int, number: int) -> torch.Generator:
    """The generator of theta number 0, 1, ...: on the CPU, so that theta is the same on every device."""
    return torch.Generator().manual_seed((seed + STRIDE * number) % 2**63)


def theta_numbered(bnn: nn.Module, seed: int, number: int, *, in_pairs: bool = True) -> Draw:
    """theta number 0, 1, ...: number 2 k + 1 lies opposite to number 2 k.

    Args:
        bnn: the network.
        seed: that of all its thetas.
        number: of this one.
        in_pairs: False: every number has a draw of its own, as in model files of version 0.2.
    """
    second = in_pairs and number % 2 == 1
    generator = theta_generator(seed, number - second)
    theta = drawn(random_tensors(bnn), generator)
    return opposite(theta, generator) if second else theta


@contextmanager
def at_theta(bnn: nn.Module, number: int, statistics: Fitted) -> Iterator[None]:
    """Inside, theta is the draw with this number, and BatchNorm in evaluation has the statistics of that theta."""
    known = next(iter(statistics.values()))
    theta = theta_numbered(bnn, int(known.seed), number, in_pairs=known.in_pairs)
    with pinned_at(theta), in_use(statistics, 1 + number):
        yield


@contextmanager
def at_mean(bnn: nn.Module) -> Iterator[None]:
    """Inside, theta = mu: the network is deterministic. (It is also addition criterion 2.)

    After `fit_batchnorm` its BatchNorm layers have the statistics for theta = mu whenever they are in eval mode.
    """
    with pinned_at_mean(bnn), in_use(fitted(bnn), 0):
        yield
