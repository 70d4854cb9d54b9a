"""How long and how fast a training moves: the number of epochs, the learning rate and the rate of updates."""

from __future__ import annotations

from dataclasses import dataclass

from ssvi import schedules
from ssvi.schedules import Schedule

STEPS = 4000
"""Steps of a training whose epochs are not given: enough for the curvature of `IVON` and for a hundred updates of gamma."""
FEWEST_EPOCHS, MOST_EPOCHS = 20, 2000
"""Many examples need several passes all the same; and very few examples give no more after many."""
WARM_UP = 0.05
"""The share of the steps in which the learning rate rises."""
OPEN_WARM_UP, OPEN_DECAY = 100, 1000
"""The same in steps for a training without a known end, and after how many steps its learning rate has fallen visibly."""

MEMORY = 0.4
"""The share of the steps over which `IVON` averages the curvature. Its own default, 10,000 steps, is longer than these
trainings: sigma would stay near its start, and predictions would be too certain. With a much shorter memory the sigma of
weights that hardly matter grows to that of the prior, which is wide."""


def default_epochs(batches_per_epoch: int) -> int:
    """The epochs that make about `STEPS` steps, but at least `FEWEST_EPOCHS` and at most `MOST_EPOCHS`."""
    return min(MOST_EPOCHS, max(FEWEST_EPOCHS, round(STEPS / batches_per_epoch)))


@dataclass(frozen=True)
class Pace:
    """How fast a training moves.

    Args:
        lr_factor: the factor of the learning rate at each step.
        rate: the share of live weights that each update of gamma replaces.
        memory: the steps over which `IVON` averages the curvature.
    """

    lr_factor: Schedule
    rate: Schedule
    memory: float


def to_the_end(steps: int, every: int, rate: float) -> Pace:
    """For a training of so many steps: both fall to 0 as a cosine, the learning rate after a warm-up."""
    rise = max(1, round(WARM_UP * steps))
    fall = schedules.cosine(1.0, steps=max(1, steps - rise))
    return Pace(
        lambda step: (step + 1) / rise if step < rise else fall(step - rise),
        schedules.cosine(rate, steps=max(1, steps // every)),
        MEMORY * steps,
    )


def without_end(rate: float) -> Pace:
    """For data that come bit by bit: the learning rate falls as 1 / sqrt(1 + step / 1000), the rate as 1 / (1 + update)."""
    return Pace(
        schedules.warmed_up(lambda step: (1 + step / OPEN_DECAY) ** -0.5, steps=OPEN_WARM_UP),
        lambda update: rate / (1 + update),
        MEMORY * STEPS,
    )
