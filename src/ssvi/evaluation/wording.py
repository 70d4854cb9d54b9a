"""Names and numbers as people read them: the same words on the terminal, in the report and in the model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ssvi.evaluation.results import Cost, Estimate, LayerRow
from ssvi.plotting.scale import short as short  # for the tables: they write numbers as axes do

METRIC = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "brier": "Brier score",
    "ece": "ECE (Guo, top label)",
    "marginal_calibration_error": "marginal calibration error (the paper's ECE)",
    "aurc": "AURC",
}
DEBIASED = "marginal_calibration_error"
"""The error whose squares are debiased, and clipped at 0."""
MADE_FOR = 32
"""Pixels of the images for which the strengths of the corruptions were chosen."""
RANKING = {"auroc": "AUROC", "aupr": "AUPR", "fpr_at_95_tpr": "FPR at 95 % TPR"}

COST = {
    "live_weights": "live weights",
    "memory_bytes": "bytes in memory",
    "training_flops": "training FLOPs",
    "inference_flops": "FLOPs per prediction",
}
"""The fields of `Cost` that are compared with dense VI."""

LAYER = ("layer", "kind", "d", "s", "density", "sigma start", "sigma now", "dead units", "median SNR", "kernel")


def number(name: str, value: float) -> str:
    """The value of a metric: accuracy as a percentage, the others with four decimals."""
    return f"{value:.2%}" if name == "accuracy" else f"{value:.4f}"


def alone(name: str, value: float) -> str:
    """`number` where no interval stands beside it: a debiased error that was clipped at 0 says so."""
    return "0 (clipped)" if name == DEBIASED and value == 0 else number(name, value)


def interval(name: str, estimate: Estimate) -> str:
    """The ends of the 95 % interval, "0.1 to 0.2"; "-" where none was computed.

    The interval of the debiased calibration error starts at exactly 0 where it was clipped there. Then the words are
    `not_from_zero`.
    """
    if estimate.low is None or estimate.high is None:
        return "-"
    if includes_zero(name, estimate):
        return not_from_zero(estimate.high)
    return f"{number(name, estimate.low)} to {number(name, estimate.high)}"


def includes_zero(name: str, estimate: Estimate) -> bool:
    """Whether this is the debiased calibration error, and its interval was clipped at 0."""
    return name == DEBIASED and estimate.low == 0


def not_from_zero(high: float) -> str:
    """What is said of an error whose 95 % interval ends at `high` and starts at 0.

    An upper end of 0 bounds nothing: no resample had an error, so the images cannot say how large it may be.
    """
    bound = f" (95 %: below {number(DEBIASED, high)})" if high > 0 else ""
    return f"not distinguishable from 0{bound}"


def strengths(shape: Sequence[int]) -> str:
    """What to know of corruptions of images of this shape (channels, height, width); nothing from 32 x 32 pixels on."""
    height, width = shape[-2:]
    if min(height, width) >= MADE_FOR:
        return ""
    return (
        f"The strengths of the corruptions were chosen for images of {MADE_FOR} x {MADE_FOR} pixels. These have {height} x "
        f"{width}: the same blur, shift or grain covers more of the image, so most corruptions are stronger here than at "
        "the same severity of published results."
    )


def samples_and_seed(samples: int, seed: int, random: bool = True) -> str:
    """What a prediction is made of, as "5 samples of the weights (seed 0)"; `random` says whether weights are random."""
    if random:
        return f"{samples} sample{'s' if samples > 1 else ''} of the weights (seed {seed})"
    return f"{samples} networks averaged" if samples > 1 else "one prediction each"


def differs_at_point(metrics: Mapping[str, Estimate], at_point: Mapping[str, float]) -> bool:
    """Whether the posterior mean, or the last network, has other numbers than the predictions; else say them once."""
    return any(at_point[key] != estimate.value for key, estimate in metrics.items() if key in at_point)


def count(value: float) -> str:
    """A count with all its digits, as 12,345; from ten million on with three digits."""
    return f"{value:,.0f}" if value < 1e7 else short(value)


def times_less(dense: float, own: float) -> str:
    """How many times less than dense VI, as "4.0x less"; "-" where it is not less."""
    return f"{dense / own:.1f}x less" if own and dense > own else "-"


def duration(seconds: float) -> str:
    """A time in seconds, minutes or hours, as 12.3 s."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def data_name(name: str) -> str:
    """The name of a data set, without the folders that it lies in."""
    return name.rstrip("/").rsplit("/", 1)[-1]


def dense_vi(cost: Cost, name: str) -> float:
    """What dense VI needs where this network needs the field `name`, one of `COST`."""
    value: float = cost.weights if name == "live_weights" else getattr(cost, f"{name}_dense_vi")
    return value


def layer(row: LayerRow) -> tuple[str, ...]:
    """A row of `layer_rows` as the cells under the head `LAYER`."""
    sigmas = ("-" if sigma is None else f"{sigma:.4g}" for sigma in (row.sigma_start, row.sigma))
    snr = "-" if row.snr is None else f"{row.snr:.2f}"
    counts = (f"{row.d:,}", f"{row.s:,}", f"{row.density:.2%}")
    return (row.layer, row.kind, *counts, *sigmas, f"{row.dead_units:.1%}", snr, row.kernel)
