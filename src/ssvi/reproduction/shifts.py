"""Evaluations beyond the own test images: other data sets, and corrupted images. Results are kept in the run folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ssvi.evaluation import FinishedRun, evaluate_corruption, evaluate_ood
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.ood import file_name
from ssvi.evaluation.results import CorruptionResult, OODResult
from ssvi.nn.random_tensor import is_random

CORRUPTION = "corruption.json"


def ood_result(run: FinishedRun, name: str, samples: int) -> OODResult | None:
    """The kept result on a data set, if it was made with as many samples."""
    return run.read(OODResult, file_name(name), lambda result: _fits(run, result, samples))


def corruption_result(run: FinishedRun, images: int | None, samples: int) -> CorruptionResult | None:
    """The kept result on corrupted images, if it was made with as many images and samples."""

    def fits(result: CorruptionResult) -> bool:
        return _fits(run, result, samples) and (images is None or result.images == images)

    return run.read(CorruptionResult, CORRUPTION, fits)


def _fits(run: FinishedRun, result: OODResult | CorruptionResult, samples: int) -> bool:
    """A network that is not random has as many outputs as members, whatever was asked for."""
    return result.seed == 0 and (result.samples == samples or not is_random(run.net))


def missing_ood(run: FinishedRun, names: Sequence[str], samples: int) -> tuple[str, ...]:
    """The data sets on which the run has no result."""
    return tuple(name for name in names if ood_result(run, name, samples) is None)


def ood_words(names: Sequence[str], samples: int) -> tuple[str, ...]:
    """The command that evaluates on other data sets, and its flags."""
    return "ood", "--samples", str(samples), *(word for name in names for word in ("--data", name))


def corruption_words(images: int | None, samples: int) -> tuple[str, ...]:
    """The command that evaluates under the 15 corruptions, and its flags."""
    return "corrupt", "--samples", str(samples), *(() if images is None else ("--images", str(images)))


def evaluate_missing_ood(
    paths: Iterable[Path], names: Sequence[str], samples: int, data_dir: Path | None, track: Track = quiet
) -> None:
    """Evaluate the finished runs on the data sets for which they have no result."""
    for path in paths:
        run = FinishedRun(path, data_dir)
        absent = missing_ood(run, names, samples)
        for name, result in evaluate_ood(run, absent, samples, 0, track).items() if absent else ():
            run.write(file_name(name), result)


def evaluate_missing_corruption(
    paths: Iterable[Path], images: int | None, samples: int, data_dir: Path | None, track: Track = quiet
) -> None:
    """Evaluate the finished runs that have no such result under the 15 corruptions."""
    for path in paths:
        run = FinishedRun(path, data_dir)
        if corruption_result(run, images, samples) is None:
            run.write(CORRUPTION, evaluate_corruption(run, samples, images=images, track=track))
