"""How well the entropy of a run tells images of other data from its own: AUROC, kept in its folder."""

from __future__ import annotations

from ssvi.evaluation import FinishedRun
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.ood import evaluate_ood, file_name
from ssvi.evaluation.results import OODResult
from ssvi.inference.predict import networks, samples_of_each
from ssvi.nn.random_tensor import is_random


def auroc(run: FinishedRun, name: str, samples: int, track: Track = quiet) -> float:
    """That of the folder, if it is of as many samples; else computed, and kept there."""
    file = file_name(name)
    drawn = len(networks(run.net)) * (samples_of_each(run.net, samples) if is_random(run.net) else 1)
    result = run.read(OODResult, file, lambda stored: stored.samples == drawn)
    if result is None:
        result = evaluate_ood(run, (name,), samples, track=track)[name]
        run.write(file, result)
    return result.scores["entropy"]["auroc"].value
