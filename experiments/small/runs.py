"""One run of the comparison: a task, a seed, a method; trained and evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import ssvi
from small.task import Metrics, Problem, Task
from small.training import Batches, PlainSettings, Settings, train_bayesian, train_plain, tune_plain

PLAIN = "plain training"
RIGL = "RigL"
"""Plain training of a sparse network: what SSVI is without a posterior."""
SAMPLES = 20
"""Samples of theta that are averaged in a prediction."""


@dataclass(frozen=True)
class PlannedRun:
    """A run to be made. Plain training has no density, or is sparse."""

    task: Task
    seed: int
    density: float | None
    plain: bool
    validation: bool
    settings: Settings

    @property
    def method(self) -> str:
        """The name of the row in the table."""
        name = RIGL if self.plain else "SSVI"
        return PLAIN if self.density is None else f"{name}, density {self.density:g}"


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
    chosen = None
    if run.plain:
        chosen = tune_plain(problem, run.task, epochs, run.seed, run.density)
        trained = train_plain(_start(problem, run.seed), problem.loss, batches, chosen, run.density)
    else:
        trained = train_bayesian(_start(problem, run.seed), problem.loss, batches, run.density, run.settings)
    metrics = problem.evaluate(lambda x: _outputs(trained, x, 1 if chosen else SAMPLES, run.seed))
    return RunResult(run.task.name, run.method, run.seed, metrics, chosen)


def _start(problem: Problem, seed: int) -> nn.Module:
    """The network at its start; the batches follow from the same seed."""
    torch.manual_seed(seed)
    return problem.network()


def _outputs(net: nn.Module, x: Tensor, samples: int, seed: int) -> Tensor:
    """The outputs for each theta: the same thetas for every x."""
    generator = torch.Generator().manual_seed(seed)
    return ssvi.predict_samples(net.eval(), x, samples, link=lambda outputs: outputs, generator=generator)
