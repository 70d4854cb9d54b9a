"""Whether the network of a recipe fits into the memory, asked before it is made."""

from __future__ import annotations

import torch

from ssvi.data.memory import free_bytes, in_gigabytes
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.recipe_rules import NETWORKS
from ssvi.training.tasks import Task

COPIES = 2
"""Of each parameter in float32: the least that training needs is the number itself and its gradient."""


def check_network_size(recipe: Recipe, task: Task) -> None:
    """Refuse a network of the package that would not fit. One's own is made as it is: it may do anything when it is made."""
    if recipe.model not in NETWORKS:
        return
    count = parameters(task)
    needed, free = 4 * COPIES * count, free_bytes()
    if needed > free:
        raise RecipeError(
            f"width={recipe.width}: model={recipe.model!r} would have {count:,} parameters for these data and need "
            f"{in_gigabytes(needed)} at least, but {in_gigabytes(free)} are free: take a smaller width or smaller images"
        )


def parameters(task: Task) -> int:
    """How many parameters the network has; it is made on torch's device without memory."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            return sum(parameter.numel() for parameter in task.network().parameters())
    except ValueError as error:  # images that are too small, a network for tables: it names the argument and the remedy
        raise RecipeError(str(error)) from error
