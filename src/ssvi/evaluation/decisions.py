"""`ssvi predict`: a class for each image, how certain it is, and "don't know" where the network should not decide.

The answer is "don't know" where the entropy of the prediction exceeds a threshold (`ssvi.evaluation.thresholds`). Beside the
class stands a conformal set of classes, which holds the true one with a promised probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ssvi.data import Split, image_files, read_images
from ssvi.decisions import class_sets
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.inference.evaluate import Outputs


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
    classes: list[str] | None = None
    """The conformal set, the most probable class first; None where no set was asked for."""


def answer(
    run: FinishedRun, paths: Iterable[Path], limit: float | None, samples: int = 5, seed: int = 0, track: Track = quiet,
    *, set_threshold: float | None = None,
) -> list[Decision]:  # fmt: skip
    """One decision for every image file, and for every image file in every folder.

    Above the entropy `limit` it is "don't know"; with `set_threshold` (of `Threshold`) each has a conformal set.
    """
    files = image_files(paths)
    x = read_images(files, run.about.fitting)
    outputs = run.outputs(Split(x, torch.zeros(len(x), dtype=torch.long)), samples, seed, "images", track)
    decisions = [_decision(str(file), run.classes, outputs, i, limit) for i, file in enumerate(files)]
    if set_threshold is None:
        return decisions
    sets = _named_sets(run.classes, outputs.probs, set_threshold)
    return [replace(decision, classes=names) for decision, names in zip(decisions, sets, strict=True)]


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


def _named_sets(classes: Sequence[str], probs: Tensor, set_threshold: float) -> list[list[str]]:
    """The names of the classes in each conformal set, the most probable first."""
    sets, order = class_sets(probs, set_threshold), probs.argsort(dim=1, descending=True, stable=True)
    return [[classes[k] for k in row.tolist() if inside[k]] for row, inside in zip(order, sets, strict=True)]


def _most_probable(classes: Sequence[str], probs: Tensor) -> dict[str, float]:
    """The five most probable classes."""
    value, order = probs.topk(min(5, len(classes)))
    return {classes[k]: p for k, p in zip(order.tolist(), value.tolist(), strict=True)}
