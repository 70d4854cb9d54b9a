"""What `ssvi reproduce` can do: its items, what each needs, and how long it takes here."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType

from ssvi.cli.tables import grid, show
from ssvi.comparison import PlannedRun
from ssvi.evaluation import wording
from ssvi.reproduction.durations import calibrate, duration, shift_seconds, stored_units
from ssvi.reproduction.grids import each_once, planned
from ssvi.reproduction.items import ITEMS, Item
from ssvi.reproduction.scales import Scale
from ssvi.training.records import to_plain

DAY = 24 * 3600


@dataclass(frozen=True)
class ListedItem:
    """A line of the list."""

    item: str
    where: str
    title: str
    needs: str
    """Data sets."""
    runs: int
    seconds: float
    """Of one core."""
    measured: bool
    """Whether all its runs are finished, so that this is no estimate."""


def show_list(scale: Scale, seeds: Sequence[int], out: Path, samples: int, as_json: bool) -> None:
    """Print the items of a scale; each run counts in every item that needs it, and once in the sum."""
    calibration = calibrate()
    runs = {name: _runs(scale, name, seeds, out) for name in ITEMS}
    listed = [_listed(ITEMS[name], scale, own, samples, calibration) for name, own in runs.items()]
    every = each_once(run for own in runs.values() for run in own)
    whole = duration(every, scale.name, samples, calibration).seconds
    whole += sum(_extra(ITEMS[name], scale, own, samples, calibration) for name, own in runs.items())
    longest = max((duration([run], scale.name, samples, calibration).seconds for run in every), default=0.0)
    plain = {"scale": scale.name, "items": [to_plain(one) for one in listed], "runs": len(every), "seconds": whole}
    show(plain, as_json, lambda: _tables(scale, listed, len(every), whole, longest))


def _runs(scale: Scale, name: str, seeds: Sequence[int], out: Path) -> list[PlannedRun]:
    return each_once(run for grid in scale.grids[name] for run in planned(grid, seeds, out))


def _extra(item: Item, scale: Scale, runs: Sequence[PlannedRun], samples: int, calibration: float) -> float:
    """Seconds for evaluations beyond the test images."""
    return shift_seconds(runs, scale.name, item.more_images(scale), samples, calibration)


def _listed(item: Item, scale: Scale, runs: Sequence[PlannedRun], samples: int, calibration: float) -> ListedItem:
    taken = duration(runs, scale.name, samples, calibration)
    extra = _extra(item, scale, runs, samples, calibration)
    data = dict.fromkeys(wording.data_name(run.recipe.data) for run in runs)
    others = dict.fromkeys(name for names in scale.ood.values() for name in names) if item.needs_ood else {}
    return ListedItem(
        item.name, item.where, item.title, ", ".join(data | others) or "nothing", len(runs), taken.seconds + extra,
        taken.measured and bool(runs) and not extra,
    )  # fmt: skip


def _tables(
    scale: Scale, listed: Sequence[ListedItem], runs: int, whole: float, longest: float
) -> Iterator[RenderableType]:
    rows = [
        (
            one.item,
            one.where,
            one.title,
            one.needs,
            str(one.runs),
            _time(one.seconds) + (" (taken)" if one.measured else ""),
        )
        for one in listed
    ]
    yield grid(
        f"scale {scale.name}: {scale.title}", ("item", "in the paper", "what", "needs", "runs", "core time"), rows
    )
    yield _sum(scale, runs, whole, longest)
    units = stored_units()
    yield (
        f"Estimates: one core, by the speed of {units.processor} on {units.date} times a calibration of this machine. "
        "`ssvi reproduce ITEM...` or `ssvi reproduce all` begins."
    )


def _sum(scale: Scale, runs: int, whole: float, longest: float) -> str:
    cores = os.cpu_count() or 1
    here = f"All items: {runs} runs, {_time(whole / cores)} here on {cores} core{'s' if cores > 1 else ''}"
    if whole / cores < DAY:
        return f"{here}."
    machines = math.ceil(whole / cores / DAY)
    alone = (
        f" The longest run takes {_time(longest)} on one core, so give runs several with --cores."
        if longest > DAY
        else ""
    )
    return f"{here}; on {machines:,} machines like this one it would take one day (docs/cluster.md).{alone}"


def _time(seconds: float) -> str:
    return f"{seconds / DAY:,.1f} days" if seconds > 2 * DAY else wording.duration(seconds)
