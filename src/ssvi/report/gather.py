"""All that a report shows of one run: what its folder keeps, and what is missing and cheap to compute."""

from __future__ import annotations

import base64
import io
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image
from torch import Tensor

from ssvi.data import DataError
from ssvi.evaluation import FinishedRun, evaluate_ood, evaluate_run, layer_rows
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.ood import NOISE, file_name
from ssvi.evaluation.results import CorruptionResult, HardImages, ImageAnswer, OODResult, RunEvaluation
from ssvi.nn.random_tensor import is_random
from ssvi.plotting import Series
from ssvi.report.reported import Reported
from ssvi.training.errors import RunError, RunFolderWarning


@dataclass(frozen=True)
class Picture:
    """An image as a data URL, and what the network says of it."""

    url: str
    answer: ImageAnswer


@dataclass(frozen=True)
class HardPictures:
    """The images of which the network was least certain, and those where it was wrong and most certain."""

    uncertain: Sequence[Picture] = ()
    wrong: Sequence[Picture] = ()


@dataclass(frozen=True, kw_only=True)
class ReportedRun(Reported):
    """One run of a report that predicts classes."""

    evaluation: RunEvaluation
    classes: list[str]
    ood: list[OODResult]
    corruption: CorruptionResult | None
    pictures: HardPictures = HardPictures()
    shape: tuple[int, ...] = ()
    """Of one image: channels, height, width; or of one row."""


def gather(runs: Sequence[FinishedRun], samples: int = 5, seed: int = 0, track: Track = quiet) -> list[ReportedRun]:
    """Each run with its results; those that were missing are computed and kept in its folder."""
    return [_gather(one, run, samples, seed, track) for one, run in zip(series_of(runs), runs, strict=True)]


def _gather(series: Series, run: FinishedRun, samples: int, seed: int, track: Track) -> ReportedRun:
    evaluation = _evaluation(run, samples, seed, track)
    return ReportedRun(
        series=series,
        path=str(run.folder.path),
        recipe=run.recipe,
        settings=settings_of(run),
        machine=machine_of(run),
        classes=run.classes,
        epochs=run.folder.metrics(),
        iou=run.folder.iou_log.read(),
        evaluation=evaluation,
        ood=_ood(run, samples, seed, track),
        corruption=run.read(CorruptionResult, "corruption.json"),
        layers=layer_rows(run.net),
        random=is_random(run.net),
        split=_split(run),
        shape=run.input_shape,
        pictures=hard_pictures(run, evaluation.images),
    )


def _evaluation(run: FinishedRun, samples: int, seed: int, track: Track) -> RunEvaluation:
    kept = run.read(RunEvaluation, "evaluation.json")
    if kept is not None:
        return kept
    evaluation = evaluate_run(run, samples, seed, track)
    run.write("evaluation.json", evaluation)
    return evaluation


def _ood(run: FinishedRun, samples: int, seed: int, track: Track) -> list[OODResult]:
    kept = run.read_all(OODResult, "ood-*.json")
    if kept:
        return kept
    result = evaluate_ood(run, (NOISE,), samples, seed, track)[NOISE]
    run.write(file_name(NOISE), result)
    return [result]


def _split(run: FinishedRun) -> tuple[int, int] | None:
    """How many training and validation images; None where the data set is no longer there."""
    try:
        training, validation = run.data.split_validation(run.recipe.validation, run.recipe.seed)
    except DataError:
        return None
    return len(training), len(validation)


def hard_pictures(run: FinishedRun, images: HardImages) -> HardPictures:
    """The pictures of these images; none where the data set is no longer there, since the numbers are kept without it."""
    try:
        x = run.test.x
    except DataError:
        return HardPictures()
    uncertain, wrong = (
        [Picture(thumbnail(x[answer.index]), answer) for answer in answers]
        for answers in (images.uncertain, images.wrong)
    )
    return HardPictures(uncertain, wrong)


def thumbnail(x: Tensor) -> str:
    """A uint8 image (1 or 3, height, width) as a PNG data URL, pixel for pixel; the page enlarges it."""
    pixels = x.permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def machine_of(run: FinishedRun) -> str:
    """Processor and threads; "-" where the record is lost, or left out as in the zoo: no other part depends on it."""
    if not (run.folder.path / "machine.json").exists():
        return "-"
    try:
        origin = run.folder.origin
    except RunError as error:
        warnings.warn(f"{error}, so the report does not name the machine", RunFolderWarning, stacklevel=2)
        return "-"
    return (
        f"{origin.processor}, {origin.threads} thread{'s' if origin.threads > 1 else ''}" if origin.processor else "-"
    )


def settings_of(run: FinishedRun) -> dict[str, str]:
    """Every setting of the recipe as text."""
    return {name: _setting(value) for name, value in run.recipe.values.items()}


def _setting(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, tuple | list) else str(value)


def series_of(runs: Sequence[FinishedRun]) -> list[Series]:
    """A series for each run, with a name of its own."""
    return [Series(i, name) for i, name in enumerate(_distinct_names(runs))]


def _distinct_names(runs: Sequence[FinishedRun]) -> list[str]:
    """The names of the folders; the whole paths of those that share a name."""
    count = Counter(run.name for run in runs)
    return [run.name if count[run.name] == 1 else str(run.folder.path) for run in runs]
