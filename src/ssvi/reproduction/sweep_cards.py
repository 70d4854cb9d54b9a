"""Sweeps as cards of a page: numbers of finished runs against a setting, or against the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ssvi.comparison.sweep import EPOCH, Source, SweepLine, read_source, sweep
from ssvi.comparison.sweep_plot import drawing
from ssvi.report.pieces import Card
from ssvi.reproduction.results import SetupResults


def over(
    results: Sequence[SetupResults],
    x: str,
    ys: Sequence[str],
    by: Sequence[str],
    *,
    only: str = "",
    log_x: bool = False,
) -> tuple[Card, ...]:
    """Numbers of the evaluation against a setting; `only` takes the runs that vary this setting."""
    cards = []
    for each in results:
        sources = _sources(each, only)
        cards += [
            Card(f"{y} against {x}: {each.data}", drawing(sweep(sources, x, y, by or ("method",)), x, y, log_x=log_x))
            for y in ys
            if sources
        ]
    return tuple(cards)


def over_epochs(
    results: Sequence[SetupResults], field: str, ys: Sequence[str], but: Sequence[str] = ()
) -> tuple[Card, ...]:
    """Numbers of the training log against the epochs, a line for each value of the setting; `but` leaves values out.

    Without validation images there is nothing to draw.
    """
    cards = []
    for each in results:
        sources = [source for source in _sources(each, field) if source.settings[field] not in but]
        logged = [source for source in sources if source.log and source.log[0].validation is not None]
        for y in ys if logged else ():
            lines = [_named_by_value(line, field) for line in sweep(logged, EPOCH, y, (field,))]
            cards.append(Card(f"{y} over training: {each.data}", drawing(lines, EPOCH, y)))
    return tuple(cards)


def _sources(results: SetupResults, field: str) -> list[Source]:
    """The finished runs; with a field those that vary it."""
    return [
        read_source(run.path, needs_evaluation=True)
        for run in results.runs
        if run.folder.finished and (not field or field in dict(run.varied))
    ]


def _named_by_value(line: SweepLine, field: str) -> SweepLine:
    return replace(line, label=line.label.removeprefix(f"{field} "))
