"""Validation accuracy against minutes of training: a drawing, and a table at some of the minutes.

The minutes of epoch e are e times the measured seconds of an epoch, not those of the clock while it was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from equal.entrants import Entrant
from equal.gathering import accuracies
from equal.plan import runs_of
from equal.record import Kept
from equal.speed import Measurement, Speed
from ssvi.comparison import Table
from ssvi.plotting import Curve, Scale, Series, curves, linear, percent
from ssvi.training.run_folder import RunError

MOST = 6
"""Curves that one drawing can hold: so many colours there are."""


@dataclass(frozen=True)
class Progress:
    """The accuracy of an entrant after each epoch, the mean over its seeds."""

    entrant: Entrant
    seeds: int
    points: tuple[tuple[float, float], ...]
    """(minutes, accuracy on the validation images)."""

    def at(self, minutes: float) -> float | None:
        """The accuracy of the network that one has after so many minutes; None before the end of the first epoch."""
        ended = [accuracy for end, accuracy in self.points if end <= minutes]
        return ended[-1] if ended else None


def progress_of(measurement: Measurement, out: Path, only: Sequence[str], kept: Sequence[Kept] = ()) -> list[Progress]:
    """The progress of the entrants of these names that have begun, or are on record; of all, if there are no names."""
    known = [speed.entrant.name for speed in measurement.speeds]
    if unknown := [name for name in only if name not in known]:
        raise RunError(f"--only {', '.join(unknown)}: take some of {', '.join(known)}")
    chosen = [speed for speed in measurement.speeds if not only or speed.entrant.name in only]
    found = [progress for speed in chosen if (progress := _progress(speed, out, kept)).points]
    if not 0 < len(found) <= MOST:
        raise RunError(
            f"{out} has {len(found)} entrants with validation accuracies, and a curve has 1 to {MOST}: see --only"
        )
    return found


def _progress(speed: Speed, out: Path, kept: Sequence[Kept]) -> Progress:
    """Over the epochs that all its seeds have reached."""
    logs = {each.name: each.accuracies for each in kept if each.entrant == speed.entrant.name}
    logs |= {run.name: accuracies(run) for run in runs_of(speed, out)}
    means = [fmean(at_epoch) for at_epoch in zip(*logs.values(), strict=False)]
    points = tuple((speed.minutes(epoch), mean) for epoch, mean in enumerate(means, 1))
    return Progress(speed.entrant, len(logs), points)


def drawing(found: Sequence[Progress]) -> str:
    """The curves as an SVG file that needs nothing else: the style sheet is inside."""
    points = [point for progress in found for point in progress.points]
    x = Scale(0.0, max(minutes for minutes, _ in points))
    y = linear([accuracy for _, accuracy in points], label=percent)
    drawn = [
        Curve(Series(i, label), each.points) for i, (label, each) in enumerate(zip(labels(found), found, strict=True))
    ]
    title = "validation accuracy against minutes of training"
    plot = curves(drawn, x, y, title=title, x_label="minutes", y_label="validation accuracy")
    return plot.file()


def labels(found: Sequence[Progress]) -> list[str]:
    """The methods; width and tag stand beside them where they differ, because the end of a long label is cut off."""
    entrants = [progress.entrant for progress in found]
    widths, tags = ({getattr(entrant, name) for entrant in entrants} for name in ("width", "tag"))
    return [
        " ".join(filter(None, (f"w{e.width}" if len(widths) > 1 else "", e.method, e.tag if len(tags) > 1 else "")))
        for e in entrants
    ]


def table(found: Sequence[Progress], minutes: Sequence[float]) -> Table:
    """A row for each entrant, a column for each of the minutes."""
    head = ["entrant", *(f"{at:g} min" for at in minutes), "seeds"]
    rows = [[each.entrant.name, *(_cell(each.at(at)) for at in minutes), str(each.seeds)] for each in found]
    return Table("Validation accuracy after so many minutes of training", head, rows)


def _cell(accuracy: float | None) -> str:
    return "-" if accuracy is None else f"{accuracy:.2%}"
