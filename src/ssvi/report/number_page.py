"""The page of runs that predict numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.plotting import HasHTML, percent
from ssvi.report import number_plots, number_tables, row_tables
from ssvi.report.gather_tables import ReportedNumbers
from ssvi.report.pieces import Cards, Section, Titled
from ssvi.report.sections import columns, cost, layers, recipe, render, training
from ssvi.report.sources import evaluated, with_intervals
from ssvi.report.used import sentence, unlike


def page(runs: Sequence[ReportedNumbers], written: str) -> str:
    """The whole page; `written` says when."""
    return render(runs, [make(runs) for make in SECTIONS], written)


def quality(runs: Sequence[ReportedNumbers]) -> Section:
    """The headline table, and its intervals as rows."""
    about = (
        "The value, its 95 % interval, and the value at the posterior mean. RMSE, MAE, CRPS and widths are in the "
        f"units of {runs[0].evaluation.target}; less is better for all but the coverages. RMSE and MAE judge the "
        "predicted number alone. CRPS and NLL judge the whole prediction: choose between networks by them if you use "
        "the intervals. The share of model variance is the part of the uncertainty that more training rows could "
        "remove."
    )
    content: list[HasHTML] = [number_tables.headline(runs), Cards(number_plots.quality(runs))]
    return Section("Quality", about, content, used=_used(runs), warnings=_warnings(runs))


def _used(runs: Sequence[ReportedNumbers]) -> str:
    return sentence(evaluated(runs))


def _warnings(runs: Sequence[ReportedNumbers]) -> list[str]:
    return [unlike(evaluated(runs))]


def calibration(runs: Sequence[ReportedNumbers]) -> Section:
    """The histogram of the PIT, and the coverage of intervals."""
    about = (
        "Do the intervals hold what they say? If they do, the bars of the left plot have the same height: each test "
        "row counts where its number lies in its prediction. In the right plot a point below the line means that "
        "intervals are too narrow: use the conformalised ones of the next section."
    )
    content: list[HasHTML] = [Cards(number_plots.calibration(runs), wide=True)]
    return Section("Calibration", about, content, used=_used(runs), warnings=_warnings(runs))


def intervals(runs: Sequence[ReportedNumbers]) -> Section:
    """Raw and conformalised intervals, and the predictions of some rows."""
    level = percent(runs[0].evaluation.intervals.level)
    about = (
        "Conformalised intervals are made wider or narrower by one number, chosen on the validation rows, so that "
        f"they hold {level} of new rows of the same kind, on average, however wrong the network is. If they are far "
        "wider than the raw ones, do not trust the raw ones. The plots show test rows evenly spread over the "
        "predictions: each true number above its prediction, and the raw interval as a line."
    )
    content: list[HasHTML] = [number_tables.intervals(runs), Cards(number_plots.predictions(runs), wide=True)]
    used = with_intervals(runs)
    return Section("Intervals", about, content, used=sentence(used), warnings=[unlike(used)])


def rows(runs: Sequence[ReportedNumbers]) -> Section:
    """The test rows with the largest error, and with the largest model uncertainty."""
    tables = {title: table for run in runs for title, table in row_tables.hard_number_rows(run).items()}
    about = (
        "Test rows. Where the number lies far outside its interval, check the row: is the number right, and is a "
        "column missing that would explain it? Where the model uncertainty is large, training had few rows like this "
        "one: collect more of them, or leave such rows to a person."
    )
    return Section("Rows", about, [Titled(title, table) for title, table in tables.items()], used=_used(runs))


SECTIONS = (quality, training, calibration, intervals, rows, columns, layers, cost, recipe)
