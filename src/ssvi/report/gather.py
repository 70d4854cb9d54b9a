"""All that a report shows of one run: what its folder keeps, and what is missing and cheap to compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_ood, evaluate_run, layer_rows
from ssvi.evaluation.ood import NOISE, file_name
from ssvi.evaluation.progress import Track, quiet
from ssvi.evaluation.results import CorruptionResult, OODResult, RunEvaluation
from ssvi.methods import about
from ssvi.report.images import thumbnail
from ssvi.training.records import without_defaults

T = TypeVar("T")


@dataclass
class Gathered:
    """One run of a report; `series` is its place among them, and decides its colour."""

    series: int
    name: str
    path: str
    recipe: dict[str, Any]
    machine: dict[str, Any]
    classes: list[str]
    epochs: list[dict[str, Any]]
    evaluation: dict[str, Any]
    outside: list[dict[str, Any]]
    corruption: dict[str, Any] | None
    layers: list[dict[str, Any]]
    pictures: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """For each kind ("uncertain", "wrong") the images as data URLs, with what the network said."""

    @property
    def what(self) -> str:
        """Method, sparsity and network in a few words."""
        sparsity = self.evaluation["cost"]["sparsity"]
        sparse = f", {100 * sparsity:.3g} % sparse" if sparsity else ""
        name = about(self.recipe["method"]).title
        return f"{name}{sparse}, {self.recipe['model']} on {self.recipe['data']}"


def gather(
    runs: Sequence[FinishedRun],
    samples: int = 5,
    seed: int = 0,
    track: Track = quiet,
    names: Sequence[str] | None = None,
) -> list[Gathered]:
    """Each run with its results; those that were missing are kept in its folder."""
    names = names or _distinct(runs)
    return [_gather(i, name, run, samples, seed, track) for i, (name, run) in enumerate(zip(names, runs, strict=True))]


def _gather(series: int, name: str, run: FinishedRun, samples: int, seed: int, track: Track) -> Gathered:
    evaluation = without_defaults(
        run.read(RunEvaluation, "evaluation.json")
        or _computed(run, "evaluation.json", evaluate_run(run, samples, seed, track))
    )
    outside = run.read_all(OODResult, "ood-*.json")
    if not outside:
        found = evaluate_ood(run, (NOISE,), samples, seed, track)[NOISE]
        outside = [_computed(run, file_name(NOISE), found)]
    return Gathered(
        series,
        name,
        str(run.folder.path),
        vars(run.recipe),
        _machine(run),
        run.classes,
        run.folder.metrics(),
        evaluation,
        without_defaults(outside),
        without_defaults(run.read(CorruptionResult, "corruption.json")),
        without_defaults(layer_rows(run.net)),
        _pictures(run, evaluation),
    )


def _computed(run: FinishedRun, file: str, result: T) -> T:
    run.write(file, result)
    return result


def _machine(run: FinishedRun) -> dict[str, Any]:
    try:
        return run.folder.machine
    except (OSError, ValueError):  # a record for people; its loss spoils nothing else
        return {}


def _pictures(run: FinishedRun, evaluation: dict[str, Any]) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    try:
        x = run.test.x
    except DataError:  # the numbers are kept, the data set has gone: a report without pictures
        return {}
    kinds = evaluation["images"]
    return {kind: [(thumbnail(x[said["index"]]), said) for said in kinds[kind]] for kind in ("uncertain", "wrong")}


def _distinct(runs: Sequence[FinishedRun]) -> list[str]:
    """The names of the folders; the whole paths of those that share a name."""
    count = Counter(run.name for run in runs)
    return [run.name if count[run.name] == 1 else str(run.folder.path) for run in runs]
