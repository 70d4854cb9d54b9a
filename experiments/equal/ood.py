"""How well the entropy of each run tells images of other data from its own: AUROC, kept in the run folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from ssvi.comparison import PlannedRun
from ssvi.comparison.rows import Spread
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.finished_run import Track, quiet
from ssvi.evaluation.ood import evaluate_ood, file_name
from ssvi.evaluation.results import OODResult
from ssvi.inference.predict import networks, samples_of_each
from ssvi.nn.random_tensor import is_random


def aurocs(
    planned: Sequence[PlannedRun], names: Sequence[str], samples: int, data_dir: Path | None, track: Track = quiet
) -> dict[str, Spread]:
    """By data set: mean and standard deviation of the AUROC over the finished runs."""
    runs = [FinishedRun(run.path, data_dir) for run in planned if run.folder.finished]
    values = {name: [_auroc(run, name, samples, track) for run in runs] for name in names}
    return {name: Spread(fmean(of), stdev(of) if len(of) > 1 else None) for name, of in values.items() if of}


def _auroc(run: FinishedRun, name: str, samples: int, track: Track) -> float:
    """That of the folder, if it is of as many samples; else computed, and kept there."""
    file = file_name(name)
    drawn = len(networks(run.net)) * (samples_of_each(run.net, samples) if is_random(run.net) else 1)
    result = run.read(OODResult, file, lambda stored: stored.samples == drawn)
    if result is None:
        result = evaluate_ood(run, (name,), samples, track=track)[name]
        run.write(file, result)
    return result.scores["entropy"]["auroc"].value
