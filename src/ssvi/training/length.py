"""How long a training is whose epochs are not given."""

from __future__ import annotations

STEPS = 4000
"""Steps of such a training: enough for the curvature of `IVON` and for a hundred updates of gamma."""
FEWEST_EPOCHS, MOST_EPOCHS = 20, 2000
"""Many examples need several passes all the same; and very few examples give no more after many."""


def default_epochs(batches_per_epoch: int) -> int:
    """The epochs that make about `STEPS` steps, but at least `FEWEST_EPOCHS` and at most `MOST_EPOCHS`."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(STEPS / batches_per_epoch)))
