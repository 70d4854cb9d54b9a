"""The epochs of a run in Weights & Biases: offline, unless the environment says otherwise."""

from __future__ import annotations

import os
import uuid
from typing import Any

from ssvi.training.recipe import RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.trackers import Numbers, Tracker, keep_id, known_id, tags_of

PROJECT = "ssvi"


def wandb_module() -> Any:
    """The package; an error where it is not installed."""
    try:
        import wandb
    except ImportError as error:
        raise RecipeError("--wandb needs Weights & Biases: pip install 'ssvi[wandb]'") from error
    return wandb


def begin_wandb(folder: RunFolder) -> Tracker:
    """Log to RUN/wandb, for `wandb sync`; WANDB_MODE=online sends the numbers at once, WANDB_PROJECT names the project.

    A resumed run has the same id, so that Weights & Biases takes both parts for one run.
    """
    wandb, tags = wandb_module(), tags_of(folder)
    known = known_id(folder, "wandb")
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT), mode=os.environ.get("WANDB_MODE", "offline"), dir=folder.path,
        id=known or uuid.uuid4().hex[:8], resume="allow", name=folder.path.name, tags=list(tags.values()),
        config=folder.recipe.values | {"ssvi": tags["ssvi"]}, settings=wandb.Settings(silent=True, console="off"),
    )  # fmt: skip
    if known is None:
        keep_id(folder, "wandb", str(run.id))

    def end(result: Numbers | None) -> None:
        run.summary.update(dict(result or {}))
        run.finish(exit_code=1 if result is None else 0)

    return Tracker(lambda numbers, step: run.log(dict(numbers), step=step), end)
