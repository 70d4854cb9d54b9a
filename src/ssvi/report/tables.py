"""The tables of a report, which the page shows as HTML; and all of them as Markdown, the model card."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ssvi
from ssvi.evaluation import wording
from ssvi.evaluation.decision_wording import DecisionRow, decision_rows
from ssvi.evaluation.results import Cost, RunEvaluation
from ssvi.evaluation.wording import METRIC, alone, differs_at_point, interval, number
from ssvi.plotting import Cell, Table
from ssvi.report import ood_tables, row_tables, sources
from ssvi.report.gather import ReportedRun
from ssvi.report.reported import Reported, things
from ssvi.report.used import lines, sentence, unlike

GENERATOR = "<!-- made by ssvi -->"
"""The line that tells a model card of ssvi from any other file."""
BY_SEVERITY = ("accuracy", "nll", "ece", "marginal_calibration_error")
"""The metrics that are shown by severity of a corruption."""


def headline(runs: Sequence[ReportedRun]) -> Table:
    """Quality on the test images, with intervals, and at the posterior mean."""
    rows = [[Cell(name), *(_quality(run.evaluation, key) for run in runs)] for key, name in METRIC.items()]
    return Table(["", *names(runs)], rows)


def _quality(evaluation: RunEvaluation, key: str) -> Cell:
    """The value, its interval, and what one network has: the posterior mean, or the last one of a mixture."""
    estimate, value = evaluation.metrics[key], number(key, evaluation.metrics[key].value)
    if not differs_at_point(evaluation.metrics, evaluation.at_mean):
        return Cell(value, (interval(key, estimate),))
    where = "at the mean" if evaluation.point == "posterior mean" else evaluation.point
    return Cell(value, (interval(key, estimate), f"{where} {alone(key, evaluation.at_mean[key])}"))


def decisions(runs: Sequence[ReportedRun]) -> Table:
    """Every number of `decision_rows`; what was promised of it stands below it."""
    by_run = [{row.name: row for row in decision_rows(run.evaluation, things(run))} for run in runs]
    shown = dict.fromkeys(name for rows in by_run for name in rows)
    rows = [[Cell(name), *(cell_of(rows.get(name)) for rows in by_run)] for name in shown]
    return Table(["", *names(runs)], rows)


def cell_of(row: DecisionRow | None) -> Cell:
    """A run without validation images, or without costs, has a dash."""
    if row is None:
        return Cell("-")
    return Cell(row.found, (row.beside,) if row.beside else ())


SIMPLE_COSTS: dict[str, Callable[[Reported], str]] = {
    "bytes on disk": lambda run: wording.count(run.cost.disk_bytes),
    "sparsity of the sparse layers": lambda run: f"{run.cost.sparsity:.2%}",
    "time to train": lambda run: wording.duration(run.cost.training_seconds),
    "trained on": lambda run: run.machine,
}
"""The rows that are not compared with dense VI."""


def cost(runs: Sequence[Reported]) -> Table:
    """Size, arithmetic and time; dense VI of the same network in the notes."""
    rows = [[Cell(name), *(_against_dense(run.cost, key) for run in runs)] for key, name in wording.COST.items()]
    rows += [[Cell(name), *(Cell(text(run)) for run in runs)] for name, text in SIMPLE_COSTS.items()]
    return Table(["", *names(runs)], rows)


def _against_dense(cost: Cost, key: str) -> Cell:
    own, dense = getattr(cost, key), wording.dense_vi(cost, key)
    if own == dense:
        return Cell(wording.count(own))
    less = f", {wording.times_less(dense, own)}" if own < dense else ""
    return Cell(wording.count(own), (f"dense VI {wording.count(dense)}{less}",))


def corruption(runs: Sequence[ReportedRun]) -> Table:
    """Means over the 15 corruptions by severity."""
    rows = []
    for key in BY_SEVERITY:
        for run in runs:
            if run.corruption is not None:
                clean = Cell(alone(key, run.corruption.clean[key]))
                by_severity = [Cell(alone(key, severity[key].value)) for severity in run.corruption.severities]
                images = Cell(f"{run.corruption.images:,}")
                rows.append([Cell(METRIC[key]), Cell(run.name), images, clean, *by_severity])
    return Table(["", "run", "images", "clean", "1", "2", "3", "4", "5"], rows, words=(0, 1))


def about_corruption(runs: Sequence[ReportedRun]) -> list[str]:
    """What must be said beside the numbers of corrupted images."""
    shapes = dict.fromkeys(run.shape for run in runs if run.corruption is not None)
    found = [
        sources.clean_is_other(runs),
        unlike(sources.corrupted(runs)),
        *(wording.strengths(s) for s in shapes if s),
    ]
    return [text for text in found if text]


def layers(run: Reported) -> Table:
    """What training made of each layer."""
    return Table(wording.LAYER, [[Cell(text) for text in wording.layer(row)] for row in run.layers], words=(0, 1))


def differing_settings(runs: Sequence[Reported]) -> Table:
    """The settings in which the runs differ."""
    return Table(["", *names(runs)], _settings(runs, runs, differing=True))


def shared_settings(runs: Sequence[Reported]) -> Table:
    """The settings that all runs share."""
    return Table(["", "all" if len(runs) > 1 else runs[0].name], _settings(runs, runs[:1], differing=False))


def _settings(runs: Sequence[Reported], shown: Sequence[Reported], *, differing: bool) -> list[list[Cell]]:
    """A row for each setting in which the runs differ, or do not; a method without the setting shows a dash."""
    known = dict.fromkeys(name for run in runs for name in run.settings)
    chosen = [name for name in known if (len({run.settings.get(name) for run in runs}) > 1) == differing]
    return [[Cell(name), *(Cell(run.settings.get(name, "-")) for run in shown)] for name in chosen]


def names(runs: Sequence[Reported]) -> list[str]:
    """The names of the runs, for the head of a table."""
    return [run.name for run in runs]


def model_card(runs: Sequence[ReportedRun], written: str) -> str:
    """The model card of one run, or of several side by side; `written` says when."""
    return whole_card(runs, [*(_about(run) for run in runs), *_tables(runs)], written)


def whole_card(runs: Sequence[Reported], blocks: Sequence[str], written: str) -> str:
    """A card of these blocks, with what all cards have: a title, layers, cost, recipe."""
    first, seen = f"{GENERATOR}\n# {', '.join(names(runs))}", things(runs[0])
    last = f"Intervals are 95 % bootstrap intervals over test {seen}. Made by ssvi {ssvi.__version__}, {written}."
    return "\n\n".join([first, *blocks, *_shared(runs), last]) + "\n"


def _about(run: ReportedRun) -> str:
    evaluation, most = run.evaluation, 10
    classes = ", ".join(run.classes[:most]) + (f", ... ({len(run.classes)})" if len(run.classes) > most else "")
    return (
        f"**{run.name}**: {run.what}. Classes: {classes}. Evaluated on {evaluation.examples:,} test {things(run)}: "
        f"{made_of(run)}. Trained: {sources.trained([run])[:-1]}, seed {run.recipe.seed}."
    )


def made_of(run: Reported) -> str:
    """What a prediction of the evaluation is made of."""
    return wording.samples_and_seed(run.samples, run.evaluation.seed, run.random)


def _tables(runs: Sequence[ReportedRun]) -> list[str]:
    decided, used = decisions(runs), sources.corrupted(runs)
    blocks = ["## Quality", *lines(sources.evaluated(runs)), headline(runs).markdown()]
    if decided.rows:
        blocks += ["## Decisions", *lines(sources.decided(runs)), decided.markdown()]
    blocks += ood_tables.blocks(runs)
    if used:
        title = "## Corrupted images, mean of 15 corruptions by severity"
        blocks += [title, sentence(used), *about_corruption(runs), corruption(runs).markdown()]
    if runs[0].table is not None:
        blocks += row_tables.blocks([row_tables.hard_class_rows(run) for run in runs])
        blocks += ["## Columns", row_tables.columns(runs).markdown()]
    return blocks


def _shared(runs: Sequence[Reported]) -> list[str]:
    """What all cards have at their end."""
    blocks = []
    for run in runs:
        blocks += [f"## Layers of {run.name}" if len(runs) > 1 else "## Layers", layers(run).markdown()]
    blocks += ["## Cost", sources.arithmetic(runs), *sources.unlike_costs(runs), cost(runs).markdown(), "## Recipe"]
    if len(runs) > 1:
        blocks.append(differing_settings(runs).markdown())
    return [*blocks, shared_settings(runs).markdown()]
