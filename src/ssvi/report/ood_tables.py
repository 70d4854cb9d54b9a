"""Tables of data sets out of distribution: one number for each of them, and all scores and rankings to look up."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import escape

from ssvi.evaluation import wording
from ssvi.evaluation.results import OODResult
from ssvi.evaluation.wording import RANKING
from ssvi.plotting import Cell, Table
from ssvi.report.gather import ReportedRun
from ssvi.report.sources import out_of_distribution
from ssvi.report.used import lines

SCORE, BEST = "entropy", "auroc"
"""The score that every network has, and the ranking that does not depend on how many images there are of each kind."""


def main_score(runs: Sequence[ReportedRun]) -> Table:
    """For each data set the AUROC of the entropy, and how many images were ranked."""
    rows = [
        [Cell(f"against {wording.data_name(name)}"), *(_counted(result) for result in _results(name, runs))]
        for name in _data(runs)
    ]
    return Table([f"{RANKING[BEST]} of the {SCORE}", *(run.name for run in runs)], rows)


def _counted(result: OODResult | None) -> Cell:
    cell = _separation(result, SCORE, BEST)
    if result is None:
        return cell
    return Cell(cell.text, (*cell.notes, f"{result.inside:,} own, {result.outside:,} others"))


def every_score(runs: Sequence[ReportedRun]) -> dict[str, Table]:
    """For each data set, by its title: how well each score tells its images from the run's own, by three rankings."""
    return {f"against {wording.data_name(name)}": _every_score(name, runs) for name in _data(runs)}


def _every_score(name: str, runs: Sequence[ReportedRun]) -> Table:
    results = _results(name, runs)
    scores = next(result.scores for result in results if result)
    rows = [
        [Cell(f"{words}, {score}"), *(_separation(result, score, ranking) for result in results)]
        for ranking, words in RANKING.items()
        for score in scores
    ]
    return Table([f"against {wording.data_name(name)}", *(run.name for run in runs)], rows)


def _data(runs: Sequence[ReportedRun]) -> list[str]:
    return sorted({result.data for run in runs for result in run.ood})


def _results(name: str, runs: Sequence[ReportedRun]) -> list[OODResult | None]:
    """The result of each run on this data set."""
    return [next((result for result in run.ood if result.data == name), None) for run in runs]


def _separation(result: OODResult | None, score: str, ranking: str) -> Cell:
    """One number and its interval; a single sample of theta has no mutual information to rank by."""
    if result is None or (score == "mutual information" and result.samples == 1):
        return Cell("-")
    estimate = result.scores[score][ranking]
    return Cell(f"{estimate.value:.3f}", (f"{estimate.low:.3f} to {estimate.high:.3f}",))


def blocks(runs: Sequence[ReportedRun]) -> list[str]:
    """The section of the model card: one number for each data set, and the others folded."""
    if not _data(runs):
        return []
    shown = ["## Out of distribution", *lines(out_of_distribution(runs)), main_score(runs).markdown()]
    folded = [
        f"<details><summary>{escape(title)}: all scores</summary>\n\n{table.markdown()}\n\n</details>"
        for title, table in every_score(runs).items()
    ]
    return [*shown, *folded]
