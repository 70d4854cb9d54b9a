"""Methods that keep several networks: the schedule of a sampler, the states that it keeps, and their mixture."""

from __future__ import annotations

from typing import Any

from torch import nn

from ssvi import schedules
from ssvi.inference.predict import Mixture
from ssvi.methods.common import with_statistics
from ssvi.methods.groups import Chain
from ssvi.methods.job import Job, Training
from ssvi.methods.settings import RecipeError


def state_gap(settings: Chain, epochs: int) -> int:
    """Epochs from one state that a sampler keeps to the next; the last one is that of the last epoch."""
    return (epochs - int(settings.burn_in * epochs)) // settings.members


def chain_epochs(settings: Chain, epochs: int) -> int:
    """As many as the recipe says, if they are enough for the states."""
    if state_gap(settings, epochs) < 1:
        raise RecipeError(
            f"epochs={epochs} with burn_in={settings.burn_in} leave too few epochs to keep "
            f"members={settings.members} states, one per epoch at most: raise epochs, or lower burn_in or members"
        )
    return epochs


def chain_in_words(settings: Chain, epochs: int) -> str:
    """The length of a chain: its burn-in, the states that it keeps, how far apart, and its temperature."""
    burn_in, gap, kept = int(settings.burn_in * epochs), state_gap(settings, epochs), settings.members
    apart = "" if kept == 1 else f", {gap} epoch{'s' if gap > 1 else ''} apart"
    states = f"{kept} state{'s' if kept > 1 else ''}{apart}"
    return f"a chain of {epochs} epochs: {burn_in} of burn-in, then {states}, at temperature {settings.temperature:g}"


def chain_schedule(job: Job[Chain]) -> schedules.Schedule:
    """A cosine from 1 to `lr_floor` at the end of the burn-in, and constant from there."""
    floor = job.settings.lr_floor
    fall = schedules.cosine(1.0, steps=max(1, round(job.settings.burn_in * job.steps)))
    return lambda step: floor + (1 - floor) * fall(step)


def is_kept(job: Job[Chain], epoch: int) -> bool:
    """Whether the sampler keeps the state at the end of this epoch."""
    left, gap = job.epochs - 1 - epoch, state_gap(job.settings, job.epochs)
    return left % gap == 0 and left // gap < job.settings.members


def keep(training: Training[Any], epoch: int, state: nn.Module) -> None:
    """Keep a state of a sampler, with BatchNorm's statistics of its own weights and not of those before."""
    training.job.states.keep(epoch, with_statistics(training.job, state))


def forget_later(training: Training[Any], epoch: int) -> None:
    """The run goes on with this epoch: what was kept later will be kept again."""
    training.job.states.forget_from(epoch)


def mixture(training: Training[Any]) -> nn.Module:
    """The mixture of all networks that were kept."""
    return Mixture(training.job.states.networks())
