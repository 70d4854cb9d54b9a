"""A method that starts from a trained network (`warm_start` in a recipe): plain training first, in the same run.

The first share of the epochs trains the plain network of the recipe, as `--method deterministic` would. Then the method
begins with that network as if it had been given as `pretrained`, for the epochs that are left, and all its schedules are of
these. One run, one log: the time and the FLOPs of both count.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch

from ssvi import methods
from ssvi.inference import distributed
from ssvi.methods.base import Method, begin
from ssvi.methods.groups import Descent
from ssvi.methods.job import Job, Training
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run import Run, wrapped

PLAIN = "deterministic"
WEIGHT_DECAY = 5e-4
"""Of the plain training: that of the literature on CIFAR, by momentum SGD."""

Phase = tuple[Method, Training[Any]]
"""What trains the epochs of a part of the run."""


def plain_phase(recipe: Recipe, job: Job[Any], device: torch.device) -> Phase:
    """Plain training for the first epochs."""
    method, settings = methods.get(PLAIN), Descent(weight_decay=WEIGHT_DECAY)
    return method, begin(method, replace(job, settings=settings, lr=recipe.warm_lr, epochs=recipe.warm_epochs), device)


def second_phase(recipe: Recipe, job: Job[Any], device: torch.device) -> Callable[[Run], None]:
    """What begins the method in a run whose network is trained; the seed is set as at the beginning of a run."""
    method = methods.get(recipe.method)

    def begin_method(run: Run) -> None:
        trained = run.net
        torch.manual_seed(recipe.seed)  # all processes begin alike, with the same support
        try:
            training = begin(method, replace(job, fresh=lambda: deepcopy(trained).cpu()), device)
        except ValueError as error:  # the library's own words: they name the argument, the value and the remedy
            raise RecipeError(str(error)) from error
        distributed.seed_noise(recipe.seed)
        run.method, run.training, run.forward = method, training, wrapped(recipe, training.net)
        run.first_epoch, run.begin_method = recipe.warm_epochs, None

    return begin_method


def with_method(run: Run) -> Run:
    """The run at the first epoch of its method, with a network that is not trained yet."""
    if run.begin_method is not None:
        run.begin_method(run)
    return run
