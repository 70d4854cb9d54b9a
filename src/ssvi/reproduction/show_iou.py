"""Do the removal criteria choose the same weights? What was recorded while training, in exact arithmetic and as printed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

from ssvi.evaluation.recorded_iou import mean_of_pairs, recorded_iou
from ssvi.plotting import Cell, Curve, Drawing, Series, Table, curves, linear
from ssvi.report.pieces import Card
from ssvi.reproduction import paper
from ssvi.reproduction.results import SetupResults
from ssvi.reproduction.scales import Scale
from ssvi.reproduction.shown import Shown, TitledTable
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED, Quantity, Side, Verdict, is_better
from ssvi.training.iou_log import IoULine
from ssvi.training.run_folder import RunError, RunFolder

FORMULAS = ("exact", "textbook")
"""Of criterion 4: the stable form, and the one that is printed, in float32."""
ALIKE, APART = 0.9, 0.5
"""Two criteria are alike above the first IoU, and apart below the second."""
SHARE = Quantity(True, lambda value: f"{value:.3f}")


def read_updates(path: Path) -> list[IoULine]:
    """The updates that a run recorded; an error if there are none."""
    lines = RunFolder(path).iou_log.read()
    if not lines:
        raise RunError(f"{path} recorded no update: train the run with --record-iou")
    return lines


def matrix(line: IoULine, formula: str) -> list[list[float]]:
    """That of a formula of criterion 4, over criteria 1 to 5."""
    order = [line.criteria.index(name) for name in paper.IOU_CRITERIA]
    whole = line.exact if formula == "exact" else line.textbook
    return [[whole[a][b] for b in order] for a in order]


def iou(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """The matrices at three moments beside the paper's, and their mean over training."""
    verdicts: list[Verdict] = []
    tables: list[TitledTable] = []
    plots: list[Card] = []
    for each in results:
        runs = [read_updates(path) for path in each.finished]
        verdicts += _verdicts(runs)
        tables += [_beside(runs, moment, each.data) for moment in paper.IOU if runs]
        plots += [Card(f"mean IoU of the ten pairs: {each.data}", _over_updates(runs))] if runs else []
    note = "The paper's matrices are of CIFAR-100 after 200 epochs, computed by the printed formula in float32."
    return Shown(tuple(verdicts), tuple(tables), tuple(plots), (note,))


def at(updates: Sequence[IoULine], moment: str) -> IoULine:
    """The first update, that in the middle, or the last."""
    recorded = recorded_iou(updates)
    assert recorded is not None, "`read_updates` refuses runs without updates"
    return {"start": recorded.start, "middle": recorded.middle, "end": recorded.end}[moment]


def _verdicts(runs: Sequence[Sequence[IoULine]]) -> list[Verdict]:
    start, end = (
        Side(moment, tuple(mean_of_pairs(matrix(at(run, moment), "textbook")) for run in runs))
        for moment in ("start", "end")
    )
    return [
        is_better("the criteria drift apart: the mean IoU of all pairs falls from start to end", start, end, SHARE),
        _apart(runs),
        _persistent(runs),
    ]


def _pair(runs: Sequence[Sequence[IoULine]], moment: str, formula: str, a: str, b: str) -> float:
    """The IoU of two criteria at a moment, the mean over the seeds."""
    i, j = paper.IOU_CRITERIA.index(a), paper.IOU_CRITERIA.index(b)
    return fmean(matrix(at(run, moment), formula)[i][j] for run in runs)


def _apart(runs: Sequence[Sequence[IoULine]]) -> Verdict:
    """Repeated if criteria 2 and 4 are apart at the end in exact arithmetic too."""
    claim = "SNR(|theta|) ends far from SNR(theta)"
    if not runs:
        return Verdict(claim, CANNOT, "no finished run")
    exact, printed = (_pair(runs, "end", formula, "snr", "snr_abs") for formula in FORMULAS)
    numbers = f"IoU at the end {exact:.3f} in exact arithmetic, {printed:.3f} by the printed formula in float32"
    if exact < APART:
        return Verdict(claim, REPEATED, numbers)
    return Verdict(claim, NOT_REPEATED, f"{numbers}: what differs is rounding" if printed < APART else numbers)


def _persistent(runs: Sequence[Sequence[IoULine]]) -> Verdict:
    claim = "|mu| and SNR(theta) stay alike from start to end"
    if not runs:
        return Verdict(claim, CANNOT, "no finished run")
    values = [_pair(runs, moment, "exact", "abs_mu", "snr") for moment in paper.IOU]
    outcome = REPEATED if min(values) >= ALIKE else NOT_REPEATED
    return Verdict(claim, outcome, f"IoU {', '.join(f'{value:.3f}' for value in values)} at start, middle and end")


def _beside(runs: Sequence[Sequence[IoULine]], moment: str, data: str) -> TitledTable:
    """The matrix of the paper and ours, pair by pair: mean over the seeds."""
    rows = [
        [
            Cell(f"{a} and {b}"),
            Cell(f"{paper.IOU[moment][i][j]:.4f}"),
            *(Cell(f"{_pair(runs, moment, formula, a, b):.4f}") for formula in reversed(FORMULAS)),
        ]
        for (i, a), (j, b) in combinations(enumerate(paper.IOU_CRITERIA), 2)
    ]
    head = ["IoU", "paper, CIFAR-100", "ours, printed formula", "ours, exact"]
    return TitledTable(f"{moment} of the training, {data}", Table(head, rows))


def _over_updates(runs: Sequence[Sequence[IoULine]]) -> Drawing:
    """The mean over the pairs and the seeds, update by update."""
    count = min(map(len, runs))
    drawn = [
        Curve(
            Series(i, formula),
            [
                (run_at + 1, fmean(mean_of_pairs(matrix(run[run_at], formula)) for run in runs))
                for run_at in range(count)
            ],
        )
        for i, formula in enumerate(FORMULAS)
    ]
    across = linear(range(1, count + 1))
    return curves(drawn, across, linear([0.0, 1.0]), title="mean IoU over training", x_label="update", y_label="IoU")
