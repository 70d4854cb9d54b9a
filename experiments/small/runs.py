"""One run of the comparison: a task, a seed, a method; trained and evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import ssvi
from small.task import Metrics, Task
from small.training import Batches, PlainSettings, Settings, train_bayesian, train_plain, tune_plain

SAMPLES = 20
"""Samples of theta that are averaged in a prediction."""


@dataclass(frozen=True)
class PlannedRun:
    """A run to be made. Plain training has no density."""

    task: Task
    seed: int
    density: float | None
    validation: bool
    settings: Settings

    @property
    def method(self) -> str:
        """The name of the row in the table."""
        return "plain training" if self.density is None else f"SSVI, density {self.density:g}"


@dataclass(frozen=True)
class RunResult:
    """The numbers of a run, and what plain training had chosen."""

    task: str
    method: str
    seed: int
    metrics: Metrics
    chosen: PlainSettings | None


def carry_out(run: PlannedRun) -> RunResult:
    """Train and evaluate. The start of the network and the order of the batches depend on the seed alone."""
    problem = run.task.draw(run.seed, run.validation)
    epochs = run.settings.epochs or run.task.epochs
    batches = Batches(problem.train, run.task.batch_size, epochs)
    chosen = tune_plain(problem, run.task, epochs, run.seed) if run.density is None else None
    torch.manual_seed(run.seed)
    net = problem.network()
    if chosen is not None:
        trained = train_plain(net, problem.loss, batches, chosen)
    else:
        trained = train_bayesian(net, problem.loss, batches, run.density, run.settings)
    samples = SAMPLES if chosen is None else 1
    metrics = problem.evaluate(lambda x: _outputs(trained, x, samples, run.seed))
    return RunResult(run.task.name, run.method, run.seed, metrics, chosen)


def _outputs(net: nn.Module, x: Tensor, samples: int, seed: int) -> Tensor:
    """The outputs for each theta: the same thetas for every x."""
    generator = torch.Generator().manual_seed(seed)
    return ssvi.predict_samples(net.eval(), x, samples, link=lambda outputs: outputs, generator=generator)
