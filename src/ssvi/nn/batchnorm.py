"""BatchNorm's statistics for weights that it was not trained with: after pruning, or for one draw of theta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.nn.random_tensor import at_sample

NO_BATCH = "batches has no batch, so there are no statistics and nothing was changed: pass at least one"


@torch.no_grad()
def recompute_batchnorm(net: nn.Module, batches: Iterable[Tensor], *, generator: torch.Generator | None = None) -> None:
    """Replace the running mean and variance of every BatchNorm by the plain average of those of `batches` of inputs.

    All modules but BatchNorm are in eval mode, and each batch has one theta ~ q, as in predictions: the average is over
    the data and the posterior. For the statistics of the posterior mean pass `ssvi.mean(net)`. As in training,
    the variance is that within a batch, the mean of the unbiased ones.
    """
    norms = [m for m in net.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    rest = iter(batches)
    if (first := next(rest, None)) is None:
        raise ValueError(NO_BATCH)
    with averaging(net, norms):
        for x in chain([first], rest):
            with at_sample(net, generator):
                net(x)


@contextmanager
def averaging(net: nn.Module, norms: Sequence[_BatchNorm]) -> Iterator[None]:
    """Inside, BatchNorm starts its statistics anew and averages them, and all other modules are in eval mode."""
    modes = {module: module.training for module in net.modules()}
    momenta = {norm: norm.momentum for norm in norms}
    net.eval()
    for norm in norms:
        norm.train()
        norm.momentum = None  # for torch, None means the plain average over all batches
        norm.reset_running_stats()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
        for norm, momentum in momenta.items():
            norm.momentum = momentum
