"""From the seconds of the sides to a row of ratios, and how a step carries its share of the updates of gamma."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ssvi.bench.cases import Work
from ssvi.bench.results import RatioRow, SparseTime
from ssvi.bench.steps import EVERY, training_step

DENSITIES = (0.10, 0.05, 0.01)

Say = Callable[[str], None]
"""A function that tells the user what is measured now."""


def with_updates(kind: str, densities: Sequence[float] = DENSITIES, width: int = 64) -> dict[str, Work]:
    """A sparse step at every density, by its name, and one at 95 % that updates gamma: "update"."""
    sides: dict[str, Work] = {f"{d}": training_step(kind, d, width=width) for d in densities}
    return sides | {"update": training_step(kind, 0.05, every=1, width=width)}


def charge_updates(seconds: dict[str, float]) -> None:
    """Add 1/100 of what an update takes to every density. It computes a dense weight gradient, so it is nearly the same."""
    extra = (seconds.pop("update") - seconds["0.05"]) / EVERY
    for name in seconds:
        if name.replace(".", "").isdigit():
            seconds[name] += extra


def against_dense(
    what: str,
    dense: str,
    seconds: Mapping[str, float],
    sides: Sequence[str],
    *,
    aims: Mapping[float, float] | None = None,
) -> RatioRow:
    """Milliseconds, ratios, and the share of the limit density x dense that is reached.

    Args:
        dense: what the dense sides are.
        sides: the dense sides, of which the fastest counts: "kind-layout", "kind-layout-bf16" or "layout".
        aims: the ratios that are aimed at, by density.
    """
    best = min(sides, key=lambda side: seconds[side])
    ratios = {d: seconds[best] / seconds[f"{d}"] for d in DENSITIES if f"{d}" in seconds}
    by_density = {
        d: SparseTime(1e3 * seconds[f"{d}"], ratio, ratio * d, (aims or {}).get(d)) for d, ratio in ratios.items()
    }
    return RatioRow(what, f"{dense} ({best.partition('-')[2] or best})", 1e3 * seconds[best], by_density)
