"""Distribution shift: images of other data sets, and corrupted images; SSVI against mBNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ssvi.comparison import Row
from ssvi.data.corruptions import SEVERITIES
from ssvi.evaluation import FinishedRun, wording
from ssvi.evaluation.results import CorruptionResult, OODResult
from ssvi.plotting import Cell, Curve, Drawing, Series, Table, curves, linear
from ssvi.report.pieces import Card
from ssvi.reproduction import paper
from ssvi.reproduction.results import SetupResults
from ssvi.reproduction.scales import PAPERS_METHOD, Scale
from ssvi.reproduction.shifts import corruption_result, ood_result
from ssvi.reproduction.shown import ACCURACY, CALIBRATION, NLL, Metric, Shown, TitledTable, side_cell, sparse_name
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED, Quantity, Side, Verdict, is_better, missing

SCORE = "entropy"
"""The paper does not say which score its ranking has."""
RANKINGS = ("auroc", "aupr")
RANKING = Quantity(True, lambda value: f"{value:.3f}")
METRICS = (ACCURACY, NLL, CALIBRATION)

T = TypeVar("T")
Corrupted = Sequence[tuple[Row, list[CorruptionResult]]]
"""The rows of a setup, each with its results for the seeds."""


def ood(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """How well the entropy tells other images from the own test images."""
    verdicts, tables = [], []
    for each in results:
        for seen in scale.ood[each.setup.name]:
            by_row = [(row, _ood_results(row, seen)) for row in each.rows]
            for ranking in RANKINGS:
                own, rival = (Side(sparse_name(row), _ranked(found, ranking)) for row, found in _rivals(by_row))
                claim = f"{each.data} against {seen}: SSVI has the higher {wording.RANKING[ranking]}"
                verdicts.append(is_better(claim, own, rival, RANKING))
            title = f"{each.words}, against {seen}"
            tables.append(TitledTable(title, _ood_table(by_row, each.setup.stands_for, seen)))
    note = (
        f"The score is the {SCORE}; the paper does not say its own. Other images are the positive class. The paper compares "
        "at equal sparsity; that of mBNN is an outcome, so it stands in the tables."
    )
    return Shown(tuple(verdicts), tuple(tables), notes=(note,))


def _rivals(found: Sequence[tuple[Row, T]]) -> list[tuple[Row, T]]:
    """The paper's method and mBNN, with their results."""
    return [next(pair for pair in found if pair[0].method == method) for method in (PAPERS_METHOD, "mbnn")]


def _ood_results(row: Row, seen: str) -> list[OODResult]:
    kept = (ood_result(FinishedRun(run.place.run), seen, run.samples) for run in row.evaluated)
    return [result for result in kept if result is not None]


def _ranked(results: Sequence[OODResult], ranking: str) -> tuple[float, ...]:
    return tuple(result.scores[SCORE][ranking].value for result in results)


def _ood_table(by_row: Sequence[tuple[Row, list[OODResult]]], trained: str, seen: str) -> Table:
    names = [wording.RANKING[ranking] for ranking in RANKINGS]
    head = ["", *(f"paper: {name}" for name in names), *(f"ours: {name}" for name in names), "seeds"]
    lines = []
    for row, found in by_row:
        printed = next((p for p in paper.OOD if (p.trained, p.seen, p.method) == (trained, seen, row.method)), None)
        cells = [Cell(f"{value:.2f}") for value in (printed.auroc, printed.aupr)] if printed else [Cell("-")] * 2
        ours = [side_cell(_ranked(found, ranking), RANKING.form) for ranking in RANKINGS]
        lines.append([Cell(sparse_name(row)), *cells, *ours, Cell(str(len(found)))])
    return Table(head, lines)


def corrupt(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """Quality by severity, the mean of the 15 corruptions."""
    verdicts: list[Verdict] = []
    tables, plots = [], []
    for each in results:
        found = [(row, _corruption_results(row, scale.corrupted)) for row in each.rows]
        verdicts += [_at_every_severity(each.data, metric, found) for metric in METRICS]
        tables += [TitledTable(f"{metric.title}: {each.words}", _severity_table(found, metric)) for metric in METRICS]
        plots += [
            Card(f"{m.title} by severity: {each.data}", _by_severity(found, m))
            for m in METRICS
            if any(of_row for _, of_row in found)
        ]
    return Shown(tuple(verdicts), tuple(tables), tuple(plots), _about_images(results, found))


def _about_images(results: Sequence[SetupResults], found: Corrupted) -> tuple[str, ...]:
    one = next((result for _, of_row in found for result in of_row), None)
    return (
        (f"Images: {one.source}; the first {one.images:,} of the test set. Severity 0 is the clean images.",)
        if one
        else ()
    )


def _corruption_results(row: Row, images: int | None) -> list[CorruptionResult]:
    kept = (corruption_result(FinishedRun(run.place.run), images, run.samples) for run in row.evaluated)
    return [result for result in kept if result is not None]


def _at(results: Sequence[CorruptionResult], metric: Metric, severity: int) -> tuple[float, ...]:
    """The mean over the corruptions for each seed; severity 0 is clean."""
    return tuple(r.severities[severity - 1][metric.key].value if severity else r.clean[metric.key] for r in results)


def _at_every_severity(data: str, metric: Metric, found: Corrupted) -> Verdict:
    """Repeated if SSVI is better than mBNN at each severity by more than the spread."""
    claim = f"{data}: SSVI has the better {metric.title} at every severity"
    pairs = [[Side(sparse_name(row), _at(of_row, metric, s)) for row, of_row in _rivals(found)] for s in SEVERITIES]
    if reason := missing(*pairs[0]):
        return Verdict(claim, CANNOT, reason)
    each = [is_better(str(s), own, rival, metric.of) for s, (own, rival) in zip(SEVERITIES, pairs, strict=True)]
    better = [verdict.claim for verdict in each if verdict.outcome == REPEATED]
    outcome = REPEATED if len(better) == len(each) else NOT_REPEATED
    return Verdict(claim, outcome, f"better at severities {', '.join(better) or 'none'}; at 3: {each[2].why}")


def _severity_table(found: Corrupted, metric: Metric) -> Table:
    head = ["severity", "clean", *map(str, SEVERITIES), "seeds"]
    lines = [
        [
            Cell(row.label),
            *(side_cell(_at(of_row, metric, severity), metric.of.form) for severity in (0, *SEVERITIES)),
            Cell(str(len(of_row))),
        ]
        for row, of_row in found
    ]
    return Table(head, lines)


def _by_severity(found: Corrupted, metric: Metric) -> Drawing:
    sides = {row.label: [Side("", _at(of_row, metric, s)) for s in (0, *SEVERITIES)] for row, of_row in found if of_row}
    drawn = [_curve(Series(i, label), points) for i, (label, points) in enumerate(sides.items())]
    ends = [end for curve in drawn for _, *both in curve.band or [(0, y, y) for _, y in curve.points] for end in both]
    scales = linear([0, max(SEVERITIES)]), linear(ends)
    return curves(drawn, *scales, title=f"{metric.title} by severity", x_label="severity", y_label=metric.key)


def _curve(series: Series, points: Sequence[Side]) -> Curve:
    band = [(i, side.mean - side.std, side.mean + side.std) for i, side in enumerate(points) if side.std is not None]
    return Curve(series, [(i, side.mean) for i, side in enumerate(points)], markers=True, band=band)
