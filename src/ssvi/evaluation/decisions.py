"""`ssvi predict`: a class for each image, how certain it is, and "don't know" where the network should not decide.

The answer is "don't know" where the entropy of the prediction exceeds a threshold. The threshold is chosen on the
validation images, so that 95 % of those that the network gets right are answered: it is the 95 % quantile of their
entropies. Images that the network gets wrong, and images of none of its classes, tend to lie above it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ssvi.data import Split, image_files, read_images
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.inference.evaluate import Outputs

ANSWERED = 0.95
"""The share of the right answers that the threshold lets through."""

FILE = "threshold.json"


@dataclass(frozen=True)
class Threshold:
    """threshold.json: the entropy above which the network says "don't know"; None refuses nothing."""

    entropy: float | None
    asked: int | None = None
    """Samples of theta that were asked for."""
    seed: int | None = None
    validation_images: int | None = None
    answered: float | None = None
    """The share of the validation images at or below the threshold."""
    accuracy_of_answered: float | None = None
    accuracy: float | None = None
    """Of all validation images."""


@dataclass(frozen=True)
class Decision:
    """What the network says of one image file."""

    file: str
    guess: str
    known: bool
    """False where the entropy exceeds the threshold: the answer is "don't know"."""
    probability: float
    entropy: float
    data_uncertainty: float
    model_uncertainty: float
    probabilities: dict[str, float]
    """The five most probable classes."""


def threshold(run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet) -> Threshold:
    """The threshold of a run, and what it does on the validation images; stored in the run folder once chosen.

    Its entropy is None where the run has no validation images: then nothing is refused.
    """
    stored = run.read(Threshold, FILE, lambda record: (record.asked, record.seed) == (samples, seed))
    if stored is not None:
        return stored
    chosen = replace(chosen_threshold(run, samples, seed, track), asked=samples, seed=seed)
    run.write(FILE, chosen)
    return chosen


def chosen_threshold(run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet) -> Threshold:
    """The threshold, from the validation images; it needs the data set of the training."""
    own_data = Path(run.recipe.data).expanduser().exists()  # it may have validation images of its own
    if not (run.recipe.validation or own_data) or not len(run.validation):
        return Threshold(None)
    return choose(run.outputs(run.validation, samples, seed, "validation images", track))


def choose(outputs: Outputs) -> Threshold:
    """The 95 % quantile of the entropy of right answers, an observed value, so that it is itself still answered."""
    right = outputs.probs.argmax(1) == outputs.labels
    if not right.any():
        return Threshold(None, validation_images=len(right))
    limit = outputs.entropy[right].quantile(ANSWERED, interpolation="higher").item()
    answered = outputs.entropy <= limit
    return Threshold(
        limit,
        validation_images=len(right),
        answered=answered.double().mean().item(),
        accuracy_of_answered=right[answered].double().mean().item(),
        accuracy=right.double().mean().item(),
    )


def answer(
    run: FinishedRun, paths: Iterable[Path], limit: float | None, samples: int = 5, seed: int = 0, track: Track = quiet
) -> list[Decision]:
    """One decision for every image file, and for every image file in every folder."""
    files = image_files(paths)
    x = read_images(files, run.about.fitting)
    outputs = run.outputs(Split(x, torch.zeros(len(x), dtype=torch.long)), samples, seed, "images", track)
    return [_decision(str(file), run.classes, outputs, i, limit) for i, file in enumerate(files)]


def _decision(file: str, classes: Sequence[str], outputs: Outputs, i: int, limit: float | None) -> Decision:
    probability, guess = outputs.probs[i].max(0)
    entropy = outputs.entropy[i].item()
    return Decision(
        file=file,
        guess=classes[int(guess)],
        known=limit is None or entropy <= limit,
        probability=probability.item(),
        entropy=entropy,
        data_uncertainty=outputs.data_uncertainty[i].item(),
        model_uncertainty=outputs.model_uncertainty[i].item(),
        probabilities=_most_probable(classes, outputs.probs[i]),
    )


def _most_probable(classes: Sequence[str], probs: Tensor) -> dict[str, float]:
    """The five most probable classes."""
    value, order = probs.topk(min(5, len(classes)))
    return {classes[k]: p for k, p in zip(order.tolist(), value.tolist(), strict=True)}
