"""How long a training is whose epochs are not given, and what the epochs of a run are spent on."""

from __future__ import annotations

from ssvi.methods.groups import Chain
from ssvi.methods.states import chain_in_words
from ssvi.training.recipe import Recipe

STEPS = 4000
"""Steps of such a training: enough for the curvature of `IVON` and for a hundred updates of gamma."""
FEWEST_EPOCHS, MOST_EPOCHS = 20, 2000
"""Many examples need several passes all the same; and very few examples give no more after many."""


def default_epochs(batches_per_epoch: int) -> int:
    """The epochs that make about `STEPS` steps, but at least `FEWEST_EPOCHS` and at most `MOST_EPOCHS`."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(STEPS / batches_per_epoch)))


def course(recipe: Recipe) -> str:
    """What the epochs are spent on, where it is more than training one network: a start, the chain of a sampler."""
    warm, settings = recipe.warm_epochs, recipe.settings
    start = f"{warm} epochs of plain training first (learning rate {recipe.warm_lr:g})" if warm else ""
    chain = chain_in_words(settings, recipe.epochs - warm) if isinstance(settings, Chain) else ""
    return "; ".join(part for part in (start, chain) if part)
