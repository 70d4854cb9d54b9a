"""Names and numbers as people read them: the same words on the terminal, in the report and in the model card."""

from __future__ import annotations

from typing import Any

METRIC = {
    "accuracy": "accuracy",
    "nll": "NLL",
    "brier": "Brier score",
    "ece": "ECE (Guo, top label)",
    "marginal_calibration_error": "marginal calibration error (the paper's ECE)",
    "aurc": "AURC",
}
RANKING = {"auroc": "AUROC", "aupr": "AUPR", "fpr_at_95_tpr": "FPR at 95 % TPR"}

COST = {
    "live_weights": "live weights",
    "memory_bytes": "bytes in memory",
    "training_flops": "training FLOPs",
    "inference_flops": "FLOPs per prediction",
}
"""What is compared with dense VI."""

LAYER = ("layer", "kind", "d", "s", "density", "sigma start", "sigma now", "dead units", "median SNR", "kernel")


def number(name: str, value: float) -> str:
    """A metric with as many digits as it deserves."""
    return f"{value:.2%}" if name == "accuracy" else f"{value:.4f}"


def interval(name: str, found: dict[str, float]) -> str:
    """low to high."""
    return f"{number(name, found['low'])} to {number(name, found['high'])}"


def short(value: float) -> str:
    """Three digits: 0.25, 12, 3.5k, 45.4G; small ones as 1e-4."""
    size = abs(value)
    for limit, sign in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.3g}{sign}"
    if 0 < size < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.3g}"


def count(value: float) -> str:
    """12,345 as it is; from ten million on three digits are enough."""
    return f"{value:,.0f}" if value < 1e7 else short(value)


def times_less(dense: float, own: float) -> str:
    """How many times less than dense VI."""
    return f"{dense / own:.1f}x less" if own and dense > own else "-"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def data_name(name: str) -> str:
    """A data set without the folders that it lies in."""
    return name.rstrip("/").rsplit("/", 1)[-1]


def dense_vi(cost: dict[str, Any], name: str) -> float:
    """What dense VI needs of this."""
    return cost["weights"] if name == "live_weights" else cost[f"{name}_dense_vi"]


def layer(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of `analysis.layer_rows` under the head `LAYER`."""
    sigma = tuple("-" if row[key] is None else f"{row[key]:.4g}" for key in ("sigma_start", "sigma"))
    snr = "-" if row["snr"] is None else f"{row['snr']:.2f}"
    counts = (f"{row['d']:,}", f"{row['s']:,}", f"{row['density']:.2%}")
    return (row["layer"], row["kind"], *counts, *sigma, f"{row['dead_units']:.1%}", snr, row["kernel"])
