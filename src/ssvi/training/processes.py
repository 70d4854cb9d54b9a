"""The processes of a run: how many may train it, the noise of each, and what happens when torchrun starts them again.

Each process has noise of its own. So a run goes on bit for bit with the number of processes that it had; with another
number the examples of every step are the same, but not the noise.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch.distributed as dist

from ssvi import methods
from ssvi.inference import distributed
from ssvi.training.errors import RunError
from ssvi.training.machine import torchrun_job
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.recipe_paths import with_moved_data, with_whole_paths
from ssvi.training.run_folder import RunFolder


class NoiseWarning(UserWarning):
    """A run goes on with other noise than it would have had."""


def check_processes(recipe: Recipe) -> None:
    """An error if several processes cannot train this recipe."""
    ranks, device = distributed.ranks(), recipe.device
    if ranks == 1:
        return
    if methods.about(recipe.method).one_process:
        raise RunError(
            f"method={recipe.method!r} with {ranks} processes: its weights would differ between them "
            "(its noise or its pruning is not shared); train it in one process"
        )
    if device not in ("cpu", "cuda"):
        raise RunError(
            f"device={device!r} with {ranks} processes: take 'cpu' (they talk by gloo), or 'cuda', which is a GPU of its "
            "own for each of them (they talk by nccl)"
        )


def change_noise(seed: int, step: int, before: int) -> None:
    """Go on with noise that nothing had before, because the number of processes was another one; and say so."""
    ranks = distributed.ranks()
    distributed.seed_noise(seed, ranks, step)
    if distributed.rank() == 0:
        warnings.warn(
            f"processes: {before} until step {step}, and {ranks} from here on; the examples of each step stay the same, "
            "but the noise differs from that of an uninterrupted run",
            NoiseWarning,
            stacklevel=2,
        )


@contextmanager
def needs_all(folder: RunFolder) -> Iterator[None]:
    """Inside, an error of the network that joins the processes becomes one line: another process has ended."""
    try:
        yield
    except RuntimeError as error:  # what gloo raises; that of nccl is a subclass
        if distributed.ranks() == 1 or not (isinstance(error, dist.DistError) or "gloo" in str(error)):
            raise
        raise RunError(
            f"another process has ended or cannot be reached, see what it says; {folder.path} has the last checkpoint. Go "
            f"on with `torchrun ... -m ssvi train --resume {folder.path}`, or let `torchrun --max-restarts N` do so"
        ) from error


def require_folder(out: Path | None) -> None:
    """An error if torchrun may start this command again, and the run could not be found then."""
    restarts = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
    if out is None and restarts > 0:
        raise RecipeError(
            f"--out is missing: torchrun --max-restarts={restarts} may start this command again, which finds its run by the "
            "folder. Give --out FOLDER, on a disk that all machines share"
        )


def is_restart(recipe: Recipe, out: str | Path, data_dir: str | Path | None = None) -> bool:
    """Whether torchrun has started this very command before, so that the run in the folder is its own and goes on.

    After a failure torchrun counts a restart. When machines come or go it does not, but the id of its job is the same.
    """
    folder = RunFolder(out)
    if not os.path.isfile(folder.path / "recipe.toml"):  # a name that is too long is no error here, but in `start`
        return False
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    same_job = bool(torchrun_job()) and folder.origin.job == torchrun_job()
    return (again or same_job) and _same(folder.recipe, with_whole_paths(with_moved_data(recipe, data_dir)))


def _same(of_run: Recipe, given: Recipe) -> bool:
    """Whether they are one recipe; a run has found out its number of epochs where the recipe leaves it open."""
    return of_run == (given if given.epochs else given.replace(epochs=of_run.epochs))
