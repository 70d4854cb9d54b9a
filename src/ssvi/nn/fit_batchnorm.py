"""BatchNorm's statistics for each theta that predictions use, from a few training batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from numbers import Integral

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.nn.at_theta import theta_numbered
from ssvi.nn.batchnorm import NO_BATCH, averaging
from ssvi.nn.fingerprint import fingerprint
from ssvi.nn.random_tensor import pinned_at, pinned_at_mean, random_tensors
from ssvi.nn.strange_inputs import strange_inputs_named
from ssvi.nn.theta_statistics import NAME, ThetaStatistics, remove

Rows = list[tuple[Tensor, Tensor]]
"""Mean and variance of each channel, for one theta after the other."""


@torch.no_grad()
def fit_batchnorm(bnn: nn.Module, batches: Iterable[Tensor], samples: int = 20, *, seed: int = 0) -> None:
    """Compute BatchNorm's statistics for theta = mu and for each of `samples` thetas, and keep them in the network.

    `predict` and `evaluate` then use these very thetas, each with its own statistics, and take no longer than before;
    `at_mean` and `mean` use those for mu. The running statistics stay as they are. Call it when training is over: with
    other weights the statistics are not used, and a warning says so. A network without BatchNorm, or without random
    weights, stays as it is.

    Args:
        bnn: a trained network.
        batches: inputs as in training, augmented as there: a few batches with a thousand examples in all. They are kept in
            memory.
        samples: K, the number of thetas; predictions can average over so many at most.
        seed: of theta_0, ..., theta_{K-1}; another seed gives other thetas.
    """
    _check_samples(samples)
    norms = [m for m in bnn.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    if not norms or not any(tensor.spreads for tensor in random_tensors(bnn)):
        return
    inputs = list(batches)
    if not inputs:
        raise ValueError(NO_BATCH)
    rows: dict[_BatchNorm, Rows] = {norm: [] for norm in norms}
    with _running_statistics_kept(norms):
        for theta in _thetas(bnn, samples, seed):
            with theta:
                _average(bnn, inputs, rows)
    _keep(bnn, rows, seed)


def _check_samples(samples: object) -> None:
    if not isinstance(samples, Integral):
        raise TypeError(f"samples={samples!r} must be a whole number: it is the number of draws theta ~ q")
    if samples < 1:
        raise ValueError(f"samples={samples!r} must be at least 1: it is the number of draws theta ~ q")


def _thetas(bnn: nn.Module, samples: int, seed: int) -> Iterator[AbstractContextManager[None]]:
    """mu, theta_0, ..., theta_{K-1}: in the order of the rows."""
    yield pinned_at_mean(bnn)
    for number in range(samples):
        yield pinned_at(theta_numbered(bnn, seed, number))


def _average(bnn: nn.Module, inputs: Sequence[Tensor], rows: dict[_BatchNorm, Rows]) -> None:
    """Append the statistics of the theta that the network has now, averaged over the batches, to the rows."""
    with averaging(bnn, list(rows)):
        for x in inputs:
            with strange_inputs_named([x], "give the inputs alone, fit_batchnorm(bnn, (x for x, y in loader))"):
                bnn(x)
    for norm, of_norm in rows.items():
        assert norm.running_mean is not None
        assert norm.running_var is not None
        of_norm.append((norm.running_mean.clone(), norm.running_var.clone()))


@contextmanager
def _running_statistics_kept(norms: Sequence[_BatchNorm]) -> Iterator[None]:
    """Afterwards the running statistics are what they were before."""
    before = {norm: {name: b.clone() for name, b in norm.named_buffers(recurse=False)} for norm in norms}
    try:
        yield
    finally:
        for norm, values in before.items():
            for name, buffer in norm.named_buffers(recurse=False):
                buffer.copy_(values[name])


def _keep(bnn: nn.Module, rows: dict[_BatchNorm, Rows], seed: int) -> None:
    """Put the statistics beside the running ones, in place of earlier statistics of single thetas."""
    remove(bnn)
    weights = fingerprint(bnn)
    for norm, of_norm in rows.items():
        means, variances = zip(*of_norm, strict=True)
        norm.add_module(NAME, ThetaStatistics(torch.stack(means), torch.stack(variances), seed, weights))
