"""evaluation.json of a run that predicts numbers: frozen dataclasses whose fields are its keys.

All numbers are in the units of the target. Lists and not tensors, so that JSON loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.evaluation.results import Cost, Estimate


@dataclass(frozen=True)
class IntervalQuality:
    """Intervals on the test rows: as the network gives them (raw), and conformalised on the validation rows."""

    level: float
    """The promised share of numbers in their interval."""
    validation_rows: int
    raw_coverage: Estimate
    """The share of test rows whose number is in its raw interval."""
    raw_width: Estimate
    """The mean width of the raw intervals."""
    threshold: float | None = None
    """What is added at both ends of a raw interval; None with too few validation rows, and then nothing is promised."""
    coverage: Estimate | None = None
    """The same as `raw_coverage` for the conformalised intervals."""
    width: Estimate | None = None


@dataclass(frozen=True)
class NumberCalibration:
    """The two calibration plots."""

    pit: list[float]
    """The shares of the test rows in bins of F(y) of equal width; all equal if the predictions are calibrated."""
    levels: list[float]
    coverages: list[float]
    """The share of numbers in their central interval at each of these levels."""


@dataclass(frozen=True)
class RowAnswer:
    """What the network says of one test row, and its true number."""

    index: int
    """Its place among the test rows, from 0 on."""
    target: float
    mean: float
    std: float
    low: float
    """The lower end of the raw interval at the level of `IntervalQuality`."""
    high: float
    model_share: float
    """The share of the variance that comes from not knowing theta."""


@dataclass(frozen=True)
class ShownRows:
    """The test rows that the report shows."""

    spread: list[RowAnswer]
    """Some rows evenly spread over the sorted predictions, for the plot."""
    wrong: list[RowAnswer]
    """Those with the largest error, the largest first."""
    unsure: list[RowAnswer]
    """Those with the largest variance that comes from not knowing theta."""


@dataclass(frozen=True)
class NumberRunEvaluation:
    """evaluation.json of numbers: quality of the predictions on the test rows, and what the network costs."""

    data: str
    target: str
    """The column that is predicted."""
    examples: int
    samples: int
    """Outputs that were averaged; a deterministic network has one."""
    seed: int
    metrics: dict[str, Estimate]
    point: str
    """Which single network `at_mean` is about: "posterior mean" or "last network"."""
    at_mean: dict[str, float]
    cost: Cost
    intervals: IntervalQuality
    calibration: NumberCalibration
    rows: ShownRows
    asked: int | None = None
    """Samples that were asked for; a deterministic network has one to give."""
