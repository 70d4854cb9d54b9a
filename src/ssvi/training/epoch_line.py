"""The numbers of an epoch: a line of metrics.jsonl."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ssvi.training.records import from_plain


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
    """Quality on validation images at the posterior mean."""

    accuracy: float
    nll: float
    ece: float


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


def epoch_line(values: dict[str, Any]) -> EpochLine:
    """The record of a line of metrics.jsonl; without validation images the line has an empty dictionary."""
    return from_plain(EpochLine, values | {"validation": values.get("validation") or None})
