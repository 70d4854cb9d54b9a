"""Plain training of several networks at once: of many small ones, each step is little more work than that of one.

The parameters of K networks of one kind are stacked, (K, ...), and `torch.func.vmap` computes all of them in one pass. Each
network has its own learning rate and weight decay, and sees the batches in the same order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.optim.lr_scheduler import LambdaLR

from small.task import Examples, Loss
from small.training import LEARNING_RATES, VALIDATION, WEIGHT_DECAYS, Batches, PlainSettings, warm_up_and_cosine

Outputs = Callable[[Tensor], Tensor]
"""x -> the outputs of each network, (K, examples, outputs)."""


def train_stacked(
    nets: Sequence[nn.Module], loss: Loss, batches: Batches, settings: Sequence[PlainSettings]
) -> Outputs:
    """Train each network by Adam with its own settings, as `train_plain` trains one."""
    parameters, buffers = stack_module_state(list(nets))
    rates, decays = (torch.tensor(values) for values in zip(*((s.lr, s.weight_decay) for s in settings), strict=True))

    def outputs(x: Tensor) -> Tensor:
        return vmap(lambda p, b: functional_call(nets[0], (p, b), (x,)))(parameters, buffers)

    optimizer = torch.optim.Adam(parameters.values(), lr=1.0)
    scheduler = LambdaLR(optimizer, warm_up_and_cosine(len(batches)))
    for x, y in batches:
        optimizer.zero_grad()
        (vmap(lambda out, y=y: loss(out, y))(outputs(x)).sum() + _penalty(parameters, decays)).backward()
        _step(optimizer, list(parameters.values()), rates)
        scheduler.step()
    return torch.no_grad()(outputs)


def tune_stacked(
    network: Callable[[], nn.Module], loss: Loss, train: Examples, size: int, epochs: int, seed: int
) -> PlainSettings:
    """The settings of the grid with the lowest NLL on examples that are held out of the training examples."""
    held_out, rest = train.split(VALIDATION, torch.Generator().manual_seed(seed))
    grid = [PlainSettings("Adam", *pair) for pair in itertools.product(LEARNING_RATES["Adam"], WEIGHT_DECAYS)]
    nets = [started(network, seed) for _ in grid]
    outputs = train_stacked(nets, loss, Batches(rest, size, epochs), grid)(held_out.x)
    scores = [float(loss(output, held_out.y)) for output in outputs]
    return grid[min(range(len(grid)), key=lambda k: scores[k] if math.isfinite(scores[k]) else math.inf)]


def started(network: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A network whose start has this seed."""
    torch.manual_seed(seed)
    return network()


def _penalty(parameters: dict[str, Tensor], decays: Tensor) -> Tensor:
    """sum_k decay_k |w_k|^2 / 2, whose gradient is the weight decay of Adam; on the weights alone, as in `train_plain`."""
    weights = [p for p in parameters.values() if p.dim() > 2]
    return sum(((decays * w.flatten(1).square().sum(1)).sum() for w in weights), torch.zeros(())) / 2


@torch.no_grad()
def _step(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor], rates: Tensor) -> None:
    """A step of Adam is linear in its learning rate: make it with rate 1, and keep the share that each network has."""
    before = [p.clone() for p in parameters]
    optimizer.step()
    for p, old in zip(parameters, before, strict=True):
        p.copy_(old + rates.view(-1, *[1] * (p.dim() - 1)) * (p - old))
