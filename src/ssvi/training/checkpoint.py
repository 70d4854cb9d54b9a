"""Checkpoints of a run, from which it goes on bit for bit."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ssvi.inference import distributed
from ssvi.methods.base import Method
from ssvi.methods.job import Training
from ssvi.training.progress import Progress
from ssvi.training.run_folder import RunError, RunFolder


def save(folder: RunFolder, training: Training[Any], progress: Progress) -> Path:
    """Write a checkpoint, whole or not at all; the first process writes for all of them."""
    random = distributed.gather(torch.get_rng_state())
    if distributed.rank() > 0:
        return folder.path
    state = {"parts": training.state_dict(), "progress": asdict(progress), "rng": random}
    try:
        return folder.save_checkpoint(progress.step, state)
    except OSError as error:
        raise RunError(f"{folder.path}: no checkpoint could be written ({error}); the last one is intact") from error


def restore(folder: RunFolder, method: Method, training: Training[Any]) -> tuple[Progress, list[str]]:
    """Load the newest intact checkpoint; returns where it is, and what was wrong with newer ones."""
    state, damaged = folder.load_checkpoint()
    progress = Progress(**state["progress"])
    try:
        method.resume(training, progress.epoch)
        training.load_state_dict(state["parts"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise RunError(f"{folder.path}: the checkpoint is of another network: {error}") from error
    torch.set_rng_state(state["rng"][distributed.rank()])
    if distributed.rank() == 0:
        folder.forget_epochs_from(progress.epoch)
    return progress, damaged
