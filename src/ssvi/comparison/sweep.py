"""A number of finished runs against one of their settings, or against the epochs: mean and deviation over the seeds.

Every setting of a recipe, every number of an evaluation and every number of the training log can stand on an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import RunEvaluation
from ssvi.methods import about
from ssvi.training.progress import EpochLine
from ssvi.training.records import to_plain
from ssvi.training.run_folder import RunError, RunFolder

EPOCH = "epoch"
NOT_COMPARED = ("seed", "threads", "device", "checkpoint_steps")
"""Settings in which the runs of one line may differ."""

X = float | str


@dataclass(frozen=True)
class SweepPoint:
    """Mean and standard deviation (None with one seed) of y at one x."""

    x: X
    mean: float
    std: float | None
    seeds: int


@dataclass(frozen=True)
class SweepLine:
    """The points of runs that differ in x and the seed alone; numbers in ascending order."""

    label: str
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True)
class Source:
    """A run: its settings, its numbers on the test set, and its log."""

    path: Path
    settings: dict[str, Any]
    numbers: dict[str, Any]
    log: tuple[EpochLine, ...]

    def pairs(self, x: str, y: str) -> Iterator[tuple[X, float]]:
        """The points that this run gives: one for each epoch, or one."""
        if x == EPOCH:
            logged = ((line.epoch + 1, _of_epoch(line).get(y)) for line in self.log)
            yield from ((epoch, value) for epoch, value in logged if value is not None)
        elif (value := self.numbers.get(y)) is not None and (at := (self.settings | self.numbers).get(x)) is not None:
            yield (at if isinstance(at, int | float) and not isinstance(at, bool) else str(at)), value


def run_folders(places: Sequence[Path]) -> list[Path]:
    """The run folders among these folders, and one level below them."""
    found = [
        file.parent for place in places for pattern in ("recipe.toml", "*/recipe.toml") for file in place.glob(pattern)
    ]
    if not found:
        raise RunError(f"{', '.join(map(str, places))}: no run folder; give one, or a folder of them")
    return sorted(set(found))


def read_source(path: Path, needs_evaluation: bool) -> Source:
    """The run in a folder; an error if it must be evaluated first."""
    folder = RunFolder(path)
    numbers: dict[str, Any] = {}
    if needs_evaluation:
        run = FinishedRun(path)
        evaluation = run.read(RunEvaluation, "evaluation.json", lambda kept: True)
        if evaluation is None:
            raise RunError(f"{path} is not evaluated: `ssvi evaluate {path}`, or `ssvi compare` for all of them")
        cost = {key: value for key, value in to_plain(evaluation.cost).items() if not isinstance(value, str)}
        # as in the tables: `sparsity` is that of all layers, so that methods which keep some of them dense can be compared
        cost |= {"sparsity": cost["sparsity_of_all"], "sparsity_of_sparse_layers": cost["sparsity"]}
        numbers = cost | {name: estimate.value for name, estimate in evaluation.metrics.items()}
    return Source(path, folder.recipe.values, numbers, tuple(folder.metrics()))


def sweep(sources: Sequence[Source], x: str, y: str, by: Sequence[str] = ()) -> list[SweepLine]:
    """y against x, a line for each combination of the settings `by`; without them, of all settings that differ."""
    _check_names(sources, x, y, by)
    if x != EPOCH and not any(x in source.settings for source in sources):
        return _against_an_outcome(sources, x, y, by or ("method",))
    names = by or _differing(sources, x)
    lines: dict[tuple[Any, ...], dict[X, list[float]]] = {}
    for source in sources:
        points = lines.setdefault(_values_of(source, names), {})
        for at, value in source.pairs(x, y):
            points.setdefault(at, []).append(value)
    return [SweepLine(_label(names, key), _summed_up(points)) for key, points in lines.items() if points]


def _against_an_outcome(sources: Sequence[Source], x: str, y: str, names: Sequence[str]) -> list[SweepLine]:
    """y against a number that is not set but comes out, such as the sparsity of `vd`: a curve for each method.

    A point is the runs that differ in the seed alone, at the mean of their x.
    """
    others = _differing(sources, x)
    lines: dict[tuple[Any, ...], dict[tuple[Any, ...], list[tuple[float, float]]]] = {}
    for source in sources:
        points = lines.setdefault(_values_of(source, names), {})
        for at, value in source.pairs(x, y):
            if not isinstance(at, str):
                points.setdefault(_values_of(source, others), []).append((at, value))
    return [SweepLine(_label(names, key), _at_means(points.values())) for key, points in lines.items() if points]


def _at_means(points: Iterable[list[tuple[float, float]]]) -> tuple[SweepPoint, ...]:
    """A point for each list of pairs (x, y), in the order of their x."""
    means = sorted((fmean(x for x, _ in pairs), [y for _, y in pairs]) for pairs in points)
    return tuple(_point(x, values) for x, values in means)


def _values_of(source: Source, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(source.settings.get(name) for name in names)


def _point(x: X, values: Sequence[float]) -> SweepPoint:
    return SweepPoint(x, fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def _summed_up(points: dict[X, list[float]]) -> tuple[SweepPoint, ...]:
    order = sorted(points, key=lambda at: (isinstance(at, str), at if not isinstance(at, str) else 0))
    return tuple(_point(at, points[at]) for at in order)


def _differing(sources: Sequence[Source], x: str) -> tuple[str, ...]:
    """The method, where there are several, and the settings in which runs of one method differ."""
    methods = dict.fromkeys(source.settings["method"] for source in sources)
    names = dict.fromkeys(name for source in sources for name in source.settings)
    chosen = [name for name in names if name not in ("method", x, *NOT_COMPARED)]
    own = [name for name in chosen if any(_values(sources, name, method) > 1 for method in methods)]
    return ("method", *own) if len(methods) > 1 and x != "method" else tuple(own)


def _values(sources: Sequence[Source], name: str, method: str) -> int:
    """How many values of the setting the runs of the method have."""
    return len({repr(source.settings.get(name)) for source in sources if source.settings["method"] == method})


def _label(names: Sequence[str], values: Sequence[Any]) -> str:
    """The method by its title, other settings by name and value; those that a method does not have are left out."""
    parts = [
        about(value).title if name == "method" else f"{name} {value}"
        for name, value in zip(names, values, strict=True)
        if value is not None
    ]
    return ", ".join(parts) or "all runs"


def _of_epoch(line: EpochLine) -> dict[str, float]:
    """The numbers of an epoch; those on validation images begin with val_."""
    plain = {name: value for name, value in to_plain(line).items() if isinstance(value, int | float)}
    validation = to_plain(line.validation) if line.validation is not None else {}
    return plain | {f"val_{name}": value for name, value in validation.items() if value is not None}


def _check_names(sources: Sequence[Source], x: str, y: str, by: Sequence[str]) -> None:
    """An error that names what there is, where a name is unknown."""
    settings = {name for source in sources for name in source.settings}
    numbers = {name for source in sources for name in source.numbers}
    logged = {name for source in sources for line in source.log for name in _of_epoch(line)}
    for flag, name, known in (
        ("--x", x, {EPOCH} | settings | numbers), ("--y", y, logged if x == EPOCH else numbers),
        *(("--by", each, settings) for each in by),
    ):  # fmt: skip
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise RunError(
                f"{flag} {name}: " + (f"did you mean {near[0]}?" if near else f"take one of {', '.join(sorted(known))}")
            )
