"""`ssvi predict`: uncertainty for a person. A class, how sure, why not, and "don't know" where it is wiser.

The network does not know where the entropy of its prediction exceeds a threshold. It is chosen on the validation images,
so that 95 % of those that the network gets right are answered: the 95 % quantile of their entropies. What it gets wrong,
and what is no image of its classes at all, tends to lie above.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ssvi.data import DataError, Split, read_images
from ssvi.data.readers.folder import SUFFIXES
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.ood import in_channels
from ssvi.evaluation.progress import Track, quiet
from ssvi.inference.outputs import Outputs

ANSWERED = 0.95
FILE = "threshold.json"


def threshold(run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet) -> dict[str, Any]:
    """The threshold of a run, and what it does on the validation images; kept in the run folder once chosen.

    Its "entropy" is None where the run has no validation images: then nothing is refused.
    """
    kept = run.read(FILE, lambda result: (result["asked"], result["seed"]) == (samples, seed))
    if kept is not None:
        return kept
    chosen: dict[str, Any] = {"asked": samples, "seed": seed, "entropy": None}
    if run.recipe.validation and len(run.validation):
        chosen |= choose(run.outputs(run.validation, samples, seed, "validation images", track))
    run.write(FILE, chosen)
    return chosen


def choose(outputs: Outputs) -> dict[str, Any]:
    """The 95 % quantile of the entropy of right answers, an observed value, so that it is itself still answered."""
    right = outputs.probs.argmax(1) == outputs.labels
    if not right.any():
        return {"entropy": None, "validation_images": len(right)}
    limit = outputs.entropy[right].quantile(ANSWERED, interpolation="higher").item()
    answered = outputs.entropy <= limit
    return {
        "entropy": limit,
        "validation_images": len(right),
        "answered": answered.double().mean().item(),
        "accuracy_of_answered": right[answered].double().mean().item(),
        "accuracy": right.double().mean().item(),
    }


def answer(
    run: FinishedRun, paths: Iterable[Path], limit: float | None, samples: int = 5, seed: int = 0, track: Track = quiet
) -> list[dict[str, Any]]:
    """One answer for every image file, and for every image file in every folder."""
    files = image_files(paths)
    size = run.about["size"]
    x = in_channels(read_images(files, (size, size)), run.about["channels"])
    outputs = run.outputs(Split(x, torch.zeros(len(x), dtype=torch.long)), samples, seed, "images", track)
    return [_answer(run.classes, outputs, i, limit) | {"file": str(file)} for i, file in enumerate(files)]


def image_files(paths: Iterable[Path]) -> list[Path]:
    """The files, and those in the folders, at any depth."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("[!.]*") if file.suffix.lower() in SUFFIXES)
            if not inside:
                raise DataError(f"{path} has no images ({', '.join(sorted(SUFFIXES))})")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"{path} does not exist")
    return found


def _answer(classes: Sequence[str], outputs: Outputs, i: int, limit: float | None) -> dict[str, Any]:
    probability, guess = outputs.probs[i].max(0)
    entropy = outputs.entropy[i].item()
    return {
        "class": classes[int(guess)],
        "known": limit is None or entropy <= limit,
        "probability": probability.item(),
        "entropy": entropy,
        "data_uncertainty": outputs.data_uncertainty[i].item(),
        "model_uncertainty": outputs.model_uncertainty[i].item(),
        "probabilities": _by_class(classes, outputs.probs[i]),
    }


def _by_class(classes: Sequence[str], probs: Tensor) -> dict[str, float]:
    """The five most probable classes."""
    value, order = probs.topk(min(5, len(classes)))
    return {classes[k]: p for k, p in zip(order.tolist(), value.tolist(), strict=True)}
