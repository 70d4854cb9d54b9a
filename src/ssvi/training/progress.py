"""Where a run is, and its numbers: of the epoch so far for a bar, of a whole epoch for a line of metrics.jsonl."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from ssvi.inference import distributed
from ssvi.methods.job import Training, Work
from ssvi.training.records import RecordError, from_plain


@dataclass(frozen=True)
class StepNumbers:
    """The averages of the epoch so far: what a progress bar shows."""

    epoch: int
    step: int
    loss: float
    nll: float
    kl: float
    beta: float
    rate: float
    lr: float
    moved: int
    images_per_second: float
    seconds: float


@dataclass(frozen=True)
class Validation:
    """Quality on the examples for validation at the posterior mean; accuracy and ECE of classes, RMSE of numbers."""

    accuracy: float | None
    nll: float
    ece: float | None
    rmse: float | None = None
    """In the units of the target."""


@dataclass(frozen=True)
class EpochLine(StepNumbers):
    """The averages of a whole epoch, and what is computed once at its end."""

    validation: Validation | None = None
    flops: int = 0
    peak_memory_bytes: int = 0
    sigma_drift: dict[str, float] = field(default_factory=dict)
    """Mean |log(sigma / sigma_init)| of each layer; empty where no weight is random."""
    iou: float | None = None
    """Intersection over union of the support with that of the epoch before; None without Bayesian layers."""


def epoch_line(values: Any) -> EpochLine:
    """The record of a line of metrics.jsonl; without validation images the line has an empty dictionary."""
    if not isinstance(values, dict):
        raise RecordError(f"not a line of metrics.jsonl: {values!r}")
    return from_plain(EpochLine, values | {"validation": values.get("validation") or None})


@dataclass
class Progress:
    """The epoch, the step, and the sums of the epoch in progress. A checkpoint holds these fields."""

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    nll: float = 0.0
    moved: int = 0
    dense_gradients: int = 0
    indices: dict[str, Tensor] = field(default_factory=dict)
    """The support of each layer at the start of the epoch."""
    proposals: int = 0
    live: dict[str, int] = field(default_factory=dict)
    """The live weights of each layer, summed over the steps of the epoch, where their number changes in it."""

    def count(self, loss: Tensor, nll: Tensor, work: Work) -> None:
        """One step more."""
        self.step += 1
        self.loss += loss.item()
        self.nll += nll.item()
        self.moved += work.moved
        self.dense_gradients += work.dense_gradients
        self.proposals += work.proposals
        for name, weights in (work.live or {}).items():
            self.live[name] = self.live.get(name, 0) + weights

    @property
    def sums(self) -> Tensor:
        """Loss and NLL, summed over the steps of this process."""
        return torch.tensor([self.loss, self.nll], dtype=torch.float64)

    def take_sums(self, sums: Tensor) -> None:
        """Go on from other sums of loss and NLL."""
        self.loss, self.nll = sums.tolist()

    def average_over_processes(self) -> None:
        """Replace the sums of this process by the means of all processes."""
        self.take_sums(distributed.mean_(self.sums))

    def next_epoch(self, indices: dict[str, Tensor]) -> Progress:
        """The start of the next epoch, with empty sums."""
        return Progress(self.epoch + 1, self.step, indices=indices)


@dataclass(frozen=True)
class Pace:
    """The clock of an epoch, or of the part of it that is trained since the run was resumed."""

    steps_per_epoch: int
    batch_size: int
    first: int
    """The step of the epoch at which the clock was started."""
    start: float = field(default_factory=time.perf_counter)

    def numbers(self, progress: Progress, training: Training[Any]) -> StepNumbers:
        """The averages of the epoch so far."""
        steps = progress.step - progress.epoch * self.steps_per_epoch
        seconds, terms = time.perf_counter() - self.start, training.loss.terms
        return StepNumbers(
            epoch=progress.epoch,
            step=progress.step,
            loss=progress.loss / steps,
            nll=progress.nll / steps,
            kl=terms.kl,
            beta=terms.beta,
            rate=training.after_step.rate(),
            lr=_rate_of_last_step(training.scheduler),
            moved=progress.moved,
            images_per_second=(steps - self.first) * self.batch_size / seconds,
            seconds=seconds,
        )


def _rate_of_last_step(scheduler: LambdaLR) -> float:
    """Of the first group. The scheduler itself has gone on to the next step, which behind the last one begins anew."""
    return float(scheduler.base_lrs[0] * scheduler.lr_lambdas[0](scheduler.last_epoch - 1))
