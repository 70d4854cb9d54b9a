"""The sides of the comparison: Bayesian training with the library's defaults, and plain training, dense or sparse, that is
tuned."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

import ssvi
from small.task import Examples, Loss, Problem, Task

EVERY, RATE = 20, 0.3
"""Of `Subspace`: the steps between two updates of gamma, and the share of live weights that the first one replaces."""
WARM_UP = 0.05
"""The share of the steps in which the learning rate rises."""
LEARNING_RATES = {"SGD": (0.01, 0.03, 0.1), "Adam": (0.001, 0.003, 0.01)}
WEIGHT_DECAYS = (0.0, 5e-4, 5e-3)
"""What plain training is tuned over."""
VALIDATION = 0.2
"""The share of its training examples on which plain training is tuned."""


@dataclass(frozen=True)
class Settings:
    """Arguments in place of the library's defaults: all empty, except when defaults are being explored."""

    to_bnn: Mapping[str, Any] = field(default_factory=dict)
    ivon: Mapping[str, Any] = field(default_factory=dict)
    subspace: Mapping[str, Any] = field(default_factory=dict)
    epochs: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Settings:
        """Give each value to the function that has an argument of its name."""
        owners: dict[str, Callable[..., Any]]
        owners = {"to_bnn": ssvi.to_bnn, "ivon": ssvi.IVON, "subspace": ssvi.Subspace}
        takes = {owner: set(inspect.signature(function).parameters) for owner, function in owners.items()}
        if unknown := set(values) - set().union({"epochs"}, *takes.values()):
            raise ValueError(f"{', '.join(sorted(unknown))}: no argument of to_bnn, IVON or Subspace, and not epochs")
        chosen = {owner: {name: values[name] for name in values if name in names} for owner, names in takes.items()}
        return cls(epochs=values.get("epochs"), **chosen)


@dataclass(frozen=True)
class Batches:
    """The batches of all epochs: equal parts of a new order in each epoch, none smaller than `size` if N is not."""

    examples: Examples
    size: int
    epochs: int

    def __len__(self) -> int:
        return self.epochs * self._per_epoch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(self.epochs):
            for index in torch.randperm(len(self.examples)).tensor_split(self._per_epoch):
                yield self.examples.x[index], self.examples.y[index]

    @property
    def _per_epoch(self) -> int:
        return max(1, len(self.examples) // self.size)


def warm_up_and_cosine(steps: int) -> Callable[[int], float]:
    """The factor of the learning rate: it rises to 1 in the first steps, and falls to 0 as a cosine."""
    rise = max(1, round(WARM_UP * steps))
    fall = ssvi.schedules.cosine(1.0, steps=max(1, steps - rise))
    return lambda step: (step + 1) / rise if step < rise else fall(step - rise)


def falling_rate(steps: int) -> Callable[[int], float]:
    """The share of live weights that each update of a training replaces."""
    return ssvi.schedules.cosine(RATE, steps=max(1, steps // EVERY))


def train_bayesian(net: nn.Module, loss: Loss, batches: Batches, density: float, settings: Settings) -> nn.Module:
    """The loop of the README: what has a default is not given, but for the warm-up, which the schedule of both sides has."""
    rate = falling_rate(len(batches))
    bnn = ssvi.to_bnn(net, density, **settings.to_bnn)
    optimizer = ssvi.IVON(bnn, train_size=len(batches.examples), warmup=0, **settings.ivon)
    scheduler = LambdaLR(optimizer, warm_up_and_cosine(len(batches)))
    subspace = ssvi.Subspace(bnn, optimizer, **{"every": EVERY, "rate": rate, **settings.subspace})
    for x, y in batches:
        with optimizer.sampled():
            loss(bnn(x), y).backward()
        optimizer.step()
        scheduler.step()
        subspace.step()
    return bnn


@dataclass(frozen=True)
class PlainSettings:
    """How plain training moves: by "SGD", with momentum 0.9, or by "Adam"."""

    optimizer: str
    lr: float
    weight_decay: float


def train_plain(
    net: nn.Module, loss: Loss, batches: Batches, settings: PlainSettings, density: float | None = None
) -> nn.Module:
    """An ordinary loop; with a density that of RigL, with the updates of the Bayesian side."""
    net = net if density is None else ssvi.to_bnn(net, density, point=True)
    optimizer = _descent(net, settings)
    scheduler = LambdaLR(optimizer, warm_up_and_cosine(len(batches)))
    subspace = None
    if density is not None:
        subspace = ssvi.Subspace(net, optimizer, every=EVERY, rate=falling_rate(len(batches)), removal="abs_mu")
    for x, y in batches:
        optimizer.zero_grad()
        loss(net(x), y).backward()
        optimizer.step()
        scheduler.step()
        if subspace is not None:
            subspace.step()
    return net


def _descent(net: nn.Module, settings: PlainSettings) -> Optimizer:
    """Weight decay acts on the weights alone, as the prior of the Bayesian side does."""
    live = {layer.posterior.mu for _, layer in ssvi.layers(net)}
    weights = [p for p in net.parameters() if p.dim() > 1 or p in live]
    others = [p for p in net.parameters() if p.dim() <= 1 and p not in live]
    groups: list[dict[str, Any]] = [{"params": weights, "weight_decay": settings.weight_decay}, {"params": others}]
    if settings.optimizer == "SGD":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=0.9)
    return torch.optim.Adam(groups, lr=settings.lr)


def tune_plain(problem: Problem, task: Task, epochs: int, seed: int, density: float | None = None) -> PlainSettings:
    """The settings of the grid with the lowest NLL on examples that are held out of the training examples."""
    held_out, train = problem.train.split(VALIDATION, torch.Generator().manual_seed(seed))

    def validation_nll(settings: PlainSettings) -> float:
        torch.manual_seed(seed)
        net = train_plain(problem.network(), problem.loss, Batches(train, task.batch_size, epochs), settings, density)
        with torch.no_grad():
            nll = float(problem.loss(net(held_out.x), held_out.y))
        return nll if math.isfinite(nll) else math.inf

    pairs = itertools.product(LEARNING_RATES[task.optimizer], WEIGHT_DECAYS)
    grid = [PlainSettings(task.optimizer, *pair) for pair in pairs]
    return min(grid, key=validation_nll)
