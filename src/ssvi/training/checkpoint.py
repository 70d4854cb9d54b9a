"""What a run keeps while it trains: checkpoints, from which it goes on bit for bit, and the networks of a mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ssvi.inference import distributed
from ssvi.methods.base import Method
from ssvi.methods.job import Training
from ssvi.training import model_file, posterior_facts, processes
from ssvi.training.device import random_state, set_random_state
from ssvi.training.progress import Progress
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunError, RunFolder

STATES = "states"
"""The folder of the networks that an ensemble or a sampler keeps."""


def save(folder: RunFolder, recipe: Recipe, training: Training[Any], progress: Progress) -> Path:
    """Write a checkpoint, whole or not at all; the first process writes for all of them."""
    random = {place: distributed.gather(random_state(device)) for place, device in _generators(training.net).items()}
    sums = distributed.gather(progress.sums)
    if distributed.rank() > 0:
        return folder.path
    priors = posterior_facts.priors(training.net)
    state: dict[str, Any] = {"parts": training.state_dict(), "priors": priors, "progress": asdict(progress), **random}
    state["processes"], state["sums"] = distributed.ranks(), sums
    state |= {"recipe": recipe.to_toml(), "states": [file.name for file in _kept_in(folder.path / STATES)]}
    with folder.writing():
        return folder.save_checkpoint(progress.step, state)


def restore(
    folder: RunFolder, state: dict[str, Any], method: Method, training: Training[Any], first_epoch: int = 0
) -> Progress:
    """Load the training state of a checkpoint; returns where it is. The method began with the epoch `first_epoch`."""
    progress = Progress(**state["progress"])
    _require_states(folder.path / STATES, state.get("states", []))
    try:
        method.resume(training, progress.epoch - first_epoch)
        posterior_facts.take_over(training.net, state["parts"]["net"], state.get("priors", {}))
        training.load_state_dict(state["parts"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise RunError(
            f"{folder.path}: the checkpoint is of another network than recipe.toml: put back the recipe of the run ({error})"
        ) from error
    _restore_process(state, training, progress)
    if distributed.rank() == 0:
        with folder.writing():
            folder.log.forget_from(progress.epoch)
            folder.iou_log.forget_after(progress.step)
    return progress


def _restore_process(state: dict[str, Any], training: Training[Any], progress: Progress) -> None:
    """What each process has of its own: its noise, and the losses of its examples in the epoch so far."""
    written_by, own = len(state["rng"]), distributed.rank()
    sums = state.get("sums", [progress.sums] * written_by)  # earlier versions kept those of the first process alone
    if written_by != distributed.ranks():
        processes.change_noise(training.job.seed, progress.step, written_by)
        progress.take_sums(torch.stack(sums).mean(0))
        return
    progress.take_sums(sums[own])
    for place, device in _generators(training.net).items():
        set_random_state(device, state[place][own])


def _kept_in(folder: Path) -> list[Path]:
    """The networks that were kept, in the order of the epochs."""
    return sorted(folder.glob("epoch-*.safetensors"))


def _require_states(folder: Path, names: list[str]) -> None:
    """An error if a network is gone that the run had kept: a mixture without it would be another one."""
    for name in names:
        if not (folder / name).is_file():
            raise RunError(
                f"{folder / name} is gone: it is a network that the run has kept. Start anew in another folder"
            )


def _generators(net: nn.Module) -> dict[str, torch.device]:
    """Where random numbers come from, by their name in a checkpoint: the CPU, and the device of the network."""
    device = next(net.parameters()).device
    return {"rng": torch.device("cpu")} | ({} if device.type == "cpu" else {"device_rng": device})


@dataclass(frozen=True)
class StateFolder:
    """RUN/states: the networks that an ensemble or a sampler keeps, a model file for each epoch that was kept.

    `fresh()` makes the plain network that a file is loaded into.
    """

    path: Path
    fresh: Callable[[], nn.Module]

    def keep(self, epoch: int, net: nn.Module) -> None:
        """Write the network of an epoch, whole or not at all; the first process writes for all of them."""
        if distributed.rank() == 0:
            self.path.mkdir(exist_ok=True)
            model_file.save(net, self.path / f"epoch-{epoch:06d}.safetensors")

    def forget_from(self, epoch: int) -> None:
        """Delete what was kept in this epoch or later."""
        for file in _kept_in(self.path):
            if int(file.stem.removeprefix("epoch-")) >= epoch:
                file.unlink(missing_ok=True)

    def networks(self) -> Iterator[nn.Module]:
        """All that was kept, in the order of the epochs."""
        return (model_file.load(file, net=self.fresh()) for file in _kept_in(self.path))
