"""Train a run longer than its recipe says, or shorter: `ssvi train --resume RUN --epochs N`.

The schedules of the learning rate, of beta and of the updates of gamma are functions of step / all steps. From the next
step on they are those of a run of N epochs at this step; what was trained before stays as it is. A run of 20 epochs that
goes on to 60 is thus not the run of 60 epochs: its first 20 epochs had the schedules of 20.
"""

from __future__ import annotations

from typing import Any

from torch.optim.lr_scheduler import LambdaLR

from ssvi import methods
from ssvi.inference import distributed
from ssvi.inference.subspace import Subspace
from ssvi.methods.base import Method
from ssvi.methods.job import Training
from ssvi.training import checkpoint
from ssvi.training.errors import RunError
from ssvi.training.progress import Progress
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import recipe_of_checkpoint
from ssvi.training.run_folder import RunFolder


def with_epochs(folder: RunFolder, recipe: Recipe, epochs: int, state: dict[str, Any] | None) -> Recipe:
    """The recipe with so many epochs; an error if the method cannot be trained longer, or if more are trained already."""
    trained = int(state["progress"]["epoch"]) if state else 0
    if epochs == recipe.epochs:
        return recipe
    if recipe.warm_start:
        raise RunError(
            f"--epochs={epochs}: a run with warm_start={recipe.warm_start} cannot be trained longer, because when its "
            f"method begins depends on its {recipe.epochs} epochs. Start a new run with --epochs {epochs}"
        )
    if methods.about(recipe.method).fixed_epochs:
        raise RunError(
            f"--epochs={epochs}: a run of method {recipe.method!r} cannot be trained longer, because what it keeps or "
            f"prunes, and when, depends on its {recipe.epochs} epochs. Start a new run with --epochs {epochs}"
        )
    if epochs < trained:
        raise RunError(f"--epochs={epochs}: {folder.path} has trained {trained} epochs already. Give {trained} or more")
    return recipe.replace(epochs=epochs)


def with_recipe(folder: RunFolder, recipe: Recipe, state: dict[str, Any]) -> dict[str, Any]:
    """A checkpoint of an earlier version, with the recipe that it was trained with, before that changes."""
    state = state | {"recipe": recipe.to_toml()}
    if distributed.rank() == 0:
        with folder.writing():
            folder.save_checkpoint(state["progress"]["step"], state)
    return state


def restore(
    folder: RunFolder,
    recipe: Recipe,
    state: dict[str, Any],
    method: Method,
    training: Training[Any],
    first_epoch: int = 0,
) -> Progress:
    """Load a checkpoint, which may be of a recipe with another number of epochs; returns where it is."""
    trained = recipe_of_checkpoint(state)
    if trained is None or trained.epochs == recipe.epochs:
        return checkpoint.restore(folder, state, method, training, first_epoch)
    parts = with_stretched_updates(state["parts"], state["progress"]["step"], training)
    progress = checkpoint.restore(folder, state | {"parts": parts}, method, training)
    follow_schedule(training.scheduler)
    return progress


def with_stretched_updates(parts: dict[str, Any], step: int, training: Training[Any]) -> dict[str, Any]:
    """The parts of a checkpoint, with as many updates of gamma behind it as a run of the new length has at this step.

    r_t is a function of their number. An update over several batches begins anew, and a run that was too short for any
    update has no state of them yet.
    """
    subspace = training.after_step.state
    if not isinstance(subspace, Subspace):
        return parts
    updates = step // training.job.settings.every
    new = {"t": updates, "calls": step, "retry_at": None, "failures": 0, "sums": {}}
    return parts | {"rule": {"ages": {}} | parts.get("rule", {}) | new}


def follow_schedule(scheduler: LambdaLR) -> None:
    """Give the next step the learning rate of the new schedule; the checkpoint holds that of the old one."""
    rates = [
        base * share(scheduler.last_epoch) for base, share in zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
    ]
    for group, rate in zip(scheduler.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    scheduler._last_lr = rates


def effects(epochs: int, before: int, trained: int) -> list[str]:
    """What another number of epochs does, for the user."""
    return [
        f"{epochs} epochs instead of {before}, of which {trained} are trained: the schedules of the learning rate, of beta "
        f"and of the updates of gamma go on as those of a run of {epochs} epochs (see docs/training.md)",
        "the model and the results of the run so far, if there were any, are removed: the new end makes new ones",
    ]
