"""The tables of a report, which the page shows as HTML; and all of them as Markdown, the model card."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ssvi
from ssvi.evaluation import wording
from ssvi.evaluation.decision_wording import DecisionRow, decision_rows
from ssvi.evaluation.results import Cost, OODResult, RunEvaluation
from ssvi.evaluation.wording import METRIC, RANKING, interval, number
from ssvi.plotting import Cell, Table
from ssvi.report.gather import ReportedRun

GENERATOR = "<!-- made by ssvi -->"
"""The line that tells a model card of ssvi from any other file."""
BY_SEVERITY = ("accuracy", "nll", "ece", "marginal_calibration_error")
"""The metrics that are shown by severity of a corruption."""


def headline(runs: Sequence[ReportedRun]) -> Table:
    """Quality on the test images, with intervals, and at the posterior mean."""
    rows = [[Cell(name), *(_quality(run.evaluation, key) for run in runs)] for key, name in METRIC.items()]
    return Table(["", *_names(runs)], rows)


def _quality(evaluation: RunEvaluation, key: str) -> Cell:
    """The value, its interval, and what one network has: the posterior mean, or the last one of a mixture."""
    estimate, one = evaluation.metrics[key], number(key, evaluation.at_mean[key])
    where = "at the mean" if evaluation.point == "posterior mean" else evaluation.point
    return Cell(number(key, estimate.value), (interval(key, estimate), f"{where} {one}"))


def decisions(runs: Sequence[ReportedRun]) -> Table:
    """Every number of `decision_rows`; what was promised of it stands below it."""
    by_run = [{row.name: row for row in decision_rows(run.evaluation)} for run in runs]
    names = dict.fromkeys(name for rows in by_run for name in rows)
    rows = [[Cell(name), *(_cell(rows.get(name)) for rows in by_run)] for name in names]
    return Table(["", *_names(runs)], rows)


def _cell(row: DecisionRow | None) -> Cell:
    """A run without validation images, or without costs, has a dash."""
    if row is None:
        return Cell("-")
    return Cell(row.found, (row.beside,) if row.beside else ())


SIMPLE_COSTS: dict[str, Callable[[ReportedRun], str]] = {
    "bytes on disk": lambda run: wording.count(run.evaluation.cost.disk_bytes),
    "sparsity of the sparse layers": lambda run: f"{run.evaluation.cost.sparsity:.2%}",
    "time to train": lambda run: wording.duration(run.evaluation.cost.training_seconds),
    "trained on": lambda run: run.machine,
}
"""The rows that are not compared with dense VI."""


def cost(runs: Sequence[ReportedRun]) -> Table:
    """Size, arithmetic and time; dense VI of the same network in the notes."""
    rows = [
        [Cell(name), *(_against_dense(run.evaluation.cost, key) for run in runs)] for key, name in wording.COST.items()
    ]
    rows += [[Cell(name), *(Cell(text(run)) for run in runs)] for name, text in SIMPLE_COSTS.items()]
    return Table(["", *_names(runs)], rows)


def _against_dense(cost: Cost, key: str) -> Cell:
    own, dense = getattr(cost, key), wording.dense_vi(cost, key)
    if own == dense:
        return Cell(wording.count(own))
    less = f", {wording.times_less(dense, own)}" if own < dense else ""
    return Cell(wording.count(own), (f"dense VI {wording.count(dense)}{less}",))


def ood(runs: Sequence[ReportedRun]) -> list[Table]:
    """For each data set out of distribution: how well each score tells its images from the run's own, by three rankings."""
    return [_ood(name, runs) for name in sorted({result.data for run in runs for result in run.ood})]


def _ood(name: str, runs: Sequence[ReportedRun]) -> Table:
    results = [next((result for result in run.ood if result.data == name), None) for run in runs]
    scores = next(result.scores for result in results if result)
    rows = [
        [Cell(f"{words}, {score}"), *(_separation(result, score, ranking) for result in results)]
        for ranking, words in RANKING.items()
        for score in scores
    ]
    return Table([f"against {wording.data_name(name)}", *_names(runs)], rows)


def _separation(result: OODResult | None, score: str, ranking: str) -> Cell:
    """One number and its interval; a single sample of theta has no mutual information to rank by."""
    if result is None or (score == "mutual information" and result.samples == 1):
        return Cell("-")
    estimate = result.scores[score][ranking]
    return Cell(f"{estimate.value:.3f}", (f"{estimate.low:.3f} to {estimate.high:.3f}",))


def corruption(runs: Sequence[ReportedRun]) -> Table:
    """Means over the 15 corruptions by severity."""
    rows = []
    for key in BY_SEVERITY:
        for run in runs:
            if run.corruption is not None:
                clean = Cell(number(key, run.corruption.clean[key]))
                by_severity = [Cell(number(key, severity[key].value)) for severity in run.corruption.severities]
                rows.append([Cell(METRIC[key]), Cell(run.name), clean, *by_severity])
    return Table(["", "run", "clean", "1", "2", "3", "4", "5"], rows, words=(0, 1))


def layers(run: ReportedRun) -> Table:
    """What training made of each layer."""
    return Table(wording.LAYER, [[Cell(text) for text in wording.layer(row)] for row in run.layers], words=(0, 1))


def differing_settings(runs: Sequence[ReportedRun]) -> Table:
    """The settings in which the runs differ."""
    return Table(["", *_names(runs)], _settings(runs, runs, differing=True))


def shared_settings(runs: Sequence[ReportedRun]) -> Table:
    """The settings that all runs share."""
    return Table(["", "all" if len(runs) > 1 else runs[0].name], _settings(runs, runs[:1], differing=False))


def _settings(runs: Sequence[ReportedRun], shown: Sequence[ReportedRun], *, differing: bool) -> list[list[Cell]]:
    """A row for each setting in which the runs differ, or do not; a method without the setting shows a dash."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    chosen = [name for name in names if (len({run.settings.get(name) for run in runs}) > 1) == differing]
    return [[Cell(name), *(Cell(run.settings.get(name, "-")) for run in shown)] for name in chosen]


def _names(runs: Sequence[ReportedRun]) -> list[str]:
    return [run.name for run in runs]


def model_card(runs: Sequence[ReportedRun], written: str) -> str:
    """The model card of one run, or of several side by side; `written` says when."""
    names = ", ".join(run.name for run in runs)
    blocks = [f"{GENERATOR}\n# {names}", *(_about(run) for run in runs), *_tables(runs)]
    blocks.append(
        f"Intervals are 95 % bootstrap intervals over test images. Made by ssvi {ssvi.__version__}, {written}."
    )
    return "\n\n".join(blocks) + "\n"


def _about(run: ReportedRun) -> str:
    evaluation, most = run.evaluation, 10
    classes = ", ".join(run.classes[:most]) + (f", ... ({len(run.classes)})" if len(run.classes) > most else "")
    return (
        f"**{run.name}**: {run.what}. Classes: {classes}. Evaluated on {evaluation.examples:,} test images with "
        f"{evaluation.samples} sample{'s' if evaluation.samples > 1 else ''} of the weights (seed {evaluation.seed}). "
        f"Trained for {len(run.epochs)} epochs, seed {run.recipe.seed}."
    )


def _tables(runs: Sequence[ReportedRun]) -> list[str]:
    blocks = [
        "## Quality",
        headline(runs).markdown(),
        *(["## Decisions", decided.markdown()] if (decided := decisions(runs)).rows else []),
        "## Out of distribution",
        *(table.markdown() for table in ood(runs)),
    ]
    if any(run.corruption for run in runs):
        blocks += ["## Corrupted images, mean of 15 corruptions by severity", corruption(runs).markdown()]
    for run in runs:
        blocks += [f"## Layers of {run.name}" if len(runs) > 1 else "## Layers", layers(run).markdown()]
    blocks += ["## Cost", cost(runs).markdown(), "## Recipe"]
    if len(runs) > 1:
        blocks.append(differing_settings(runs).markdown())
    return [*blocks, shared_settings(runs).markdown()]
