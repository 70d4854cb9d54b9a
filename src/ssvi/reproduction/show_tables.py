"""Tables 1 and 2 of the paper: its rows beside ours, and what becomes of its claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssvi.comparison import EvaluatedRun, Row
from ssvi.evaluation import wording
from ssvi.methods import about
from ssvi.plotting import Cell, Table, short
from ssvi.reproduction import paper
from ssvi.reproduction.paper import PaperRow
from ssvi.reproduction.results import SetupResults, Value
from ssvi.reproduction.scales import OURS, PAPERS_METHOD, Scale
from ssvi.reproduction.shown import (
    ACCURACY,
    CALIBRATION,
    NLL,
    Shown,
    TitledTable,
    metric_cell,
    sparse_name,
    spread_cell,
)
from ssvi.reproduction.verdicts import (
    CANNOT,
    NOT_REPEATED,
    REPEATED,
    Quantity,
    Side,
    Verdict,
    is_best,
    is_within,
    missing,
)

LIMITS = {paper.CIFAR_10: (0.05, 0.02, 0.002), paper.CIFAR_100: (0.1, 0.03, 0.0001)}
"""By data set of the paper: at this density the loss of accuracy, and the rise of its ECE, are under these limits."""

AS_SPARSE = 0.01
"""A rival is as sparse if it removes so much less of the weights at most."""

COST = Quantity(False, short)

_PAPER_HEAD = ("accuracy", "NLL", "ECE", "sparsity", "FLOPs")
_OUR_HEAD = ("accuracy", "NLL", CALIBRATION.title, "sparsity", "live weights", "FLOPs", "of dense VI", "seeds")


def table_1(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """SSVI against dense VI."""
    return _shown(results, scale, paper.TABLE_1, _against_dense)


def table_2(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """SSVI against the sparse BNNs."""
    return _shown(results, scale, paper.TABLE_2, _against_sparse)


def _shown(
    results: Sequence[SetupResults],
    scale: Scale,
    table: tuple[PaperRow, ...],
    claims: Callable[[SetupResults], list[Verdict]],
) -> Shown:
    verdicts = [verdict for each in results for verdict in (*claims(each), _numbers(each, table, scale))]
    return Shown(tuple(verdicts), tuple(TitledTable(each.words, _beside(each, table)) for each in results))


# ---- the table -------------------------------------------------------------------------------------------------------


def _beside(results: SetupResults, table: tuple[PaperRow, ...]) -> Table:
    """A line for each of our rows; that of the paper stands on its left where there is one."""
    of = results.setup.stands_for
    head = ["", *(f"paper, {of}: {name}" for name in _PAPER_HEAD), *(f"ours: {name}" for name in _OUR_HEAD)]
    return Table(
        head, [[Cell(row.label), *_printed(_paper_row(row, table, of)), *_our_cells(row)] for row in results.rows]
    )


def _paper_row(row: Row, table: tuple[PaperRow, ...], data: str) -> PaperRow | None:
    return paper.row_of(table, data, row.method, row.density)


def _printed(row: PaperRow | None) -> list[Cell]:
    if row is None:
        return [Cell("-")] * len(_PAPER_HEAD)
    cost = short(row.flops) if row.flops else f"{row.of_dense:g}x"
    nll = "-" if row.nll is None else f"{row.nll:g}"
    return [Cell(text) for text in (f"{row.accuracy:.2%}", nll, f"{row.ece:g}", f"{row.sparsity:.1%}", cost)]


def _our_cells(row: Row) -> list[Cell]:
    return [
        metric_cell(row, ACCURACY),
        metric_cell(row, NLL),
        metric_cell(row, CALIBRATION),
        spread_cell(row, _sparsity, lambda value: f"{value:.1%}"),
        spread_cell(row, lambda run: run.cost.live_weights, wording.count),
        spread_cell(row, _flops, short),
        spread_cell(row, lambda run: run.of_dense_vi, lambda value: f"{value:.3g}x"),
        Cell(row.seeds),
    ]


def _sparsity(run: EvaluatedRun) -> float:
    return run.sparsity


def _flops(run: EvaluatedRun) -> float:
    return run.cost.training_flops


# ---- the claims ------------------------------------------------------------------------------------------------------


def _against_dense(results: SetupResults) -> list[Verdict]:
    """The two sentences of the paper on Table 1, for its own method and for ours."""
    density, loss, rise = LIMITS[results.setup.stands_for]
    verdicts = []
    for method in (PAPERS_METHOD, OURS):
        for metric, what, limit in ((ACCURACY, "loss of accuracy", loss), (CALIBRATION, "rise", rise)):
            claim = (
                f"{results.data}: {about(method).title} at density {density:g} is within {metric.of.form(limit)} "
                f"of dense VI in {metric.title}"
            )
            sparse, dense = results.side(metric, method, density), results.side(metric, "vi")
            verdicts.append(is_within(claim, what, sparse, dense, limit, metric.of))
    return verdicts


def _against_sparse(results: SetupResults) -> list[Verdict]:
    """Best of all in each metric, and in cost; and best of those that are as sparse."""
    own = next(row for row in results.rows if row.method == PAPERS_METHOD)
    rivals = [row for row in results.rows if not about(row.method).is_ours]
    as_sparse = [row for row in rivals if _mean_sparsity(row) > _mean_sparsity(own) - AS_SPARSE]
    verdicts = []
    for metric in (ACCURACY, NLL, CALIBRATION):
        for others, which in ((rivals, "all sparse BNNs"), (as_sparse, "those as sparse as it")):
            claim = f"{results.data}: {about(own.method).title} has the best {metric.title} of {which}"
            verdicts.append(is_best(claim, _side(own, metric), [_side(row, metric) for row in others], metric.of))
    claim = f"{results.data}: {about(own.method).title} takes the fewest training FLOPs"
    return [*verdicts, is_best(claim, _side(own, _flops), [_side(row, _flops) for row in rivals], COST)]


def _side(row: Row, value: Value) -> Side:
    """A row as a side of a comparison, with its sparsity in its name."""
    return Side(sparse_name(row), tuple(value(run) for run in row.evaluated))


def _mean_sparsity(row: Row) -> float:
    over = row.spread(_sparsity)
    return over.mean if over else 0.0


def _numbers(results: SetupResults, table: tuple[PaperRow, ...], scale: Scale) -> Verdict:
    """Are the printed accuracies of the paper's method ours? A question for its own data, network and epochs alone."""
    claim = f"{results.data}: the printed accuracies of SSVI"
    if not scale.like_paper:
        why = f"{results.words} is not {results.setup.stands_for} with ResNet-18 of width 64 and 200 epochs"
        return Verdict(claim, CANNOT, why)
    of = results.setup.stands_for
    pairs = [
        (row, printed)
        for row in results.rows
        if row.method == PAPERS_METHOD and (printed := _paper_row(row, table, of))
    ]
    if reason := missing(*(_side(row, ACCURACY) for row, _ in pairs)):
        return Verdict(claim, CANNOT, reason)
    return _close(claim, [(_side(row, ACCURACY), printed.accuracy) for row, printed in pairs])


def _close(claim: str, pairs: Sequence[tuple[Side, float]]) -> Verdict:
    """Repeated if every printed number lies within two standard deviations of ours."""
    off = [side for side, printed in pairs if abs(side.mean - printed) > 2 * (side.std or 0.0)]
    why = "; ".join(f"{side.name} {side.mean:.2%}, printed {printed:.2%}" for side, printed in pairs)
    return Verdict(claim, NOT_REPEATED if off else REPEATED, why)
