"""The files of checkpoints: a training state, followed by the 32 bytes of its SHA-256."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from ssvi.training.errors import RunError
from ssvi.training.run_files import CHECKPOINTS
from ssvi.training.sealed import write_whole

KEPT = 2
"""How many checkpoints are kept: if the newest is damaged, there is one before it."""

_SEAL = hashlib.sha256().digest_size


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write a training state; then, and only then, forget all but the newest two."""
    buffer = io.BytesIO()
    torch.save({"format": CHECKPOINTS[-1], **state}, buffer)
    content = buffer.getvalue()
    path = folder / "checkpoints" / f"step-{step:09d}.pt"
    write_whole(path, content + hashlib.sha256(content).digest())
    for old in checkpoints(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def checkpoints(folder: Path) -> list[Path]:
    """From the oldest to the newest."""
    return sorted((folder / "checkpoints").glob("step-*.pt"))


def newest_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest intact training state, if there is one, and what was wrong with newer ones."""
    damaged: list[str] = []
    for path in reversed(checkpoints(folder)):
        try:
            return read_checkpoint(path), damaged
        except RunError as error:
            damaged.append(str(error))
    return None, damaged


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A training state whose seal and format are right."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    if len(content) <= _SEAL or hashlib.sha256(content[:-_SEAL]).digest() != content[-_SEAL:]:
        raise RunError(f"{path} is damaged or cut short (its SHA-256 does not match)")
    state: dict[str, Any] = torch.load(io.BytesIO(content[:-_SEAL]), weights_only=True)
    if state.get("format") not in CHECKPOINTS:
        known = ", ".join(map(str, CHECKPOINTS))
        raise RunError(
            f"{path} has format {state.get('format')}, this version reads {known}: use the ssvi that wrote it"
        )
    return state
