"""What a method is: a module with the members of `Method`, in their order. `training/run.py` knows nothing else of it.

A member that makes something with a state (network, loss, optimiser, what is done after a step) is called once, when a run
begins. A member that is an event (end of an epoch, resumption, product) is called with the `Training` of that run.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ssvi import schedules
from ssvi.inference.ivon import IVON
from ssvi.methods.job import AfterStep, Job, Loss, Training
from ssvi.methods.search import Search
from ssvi.methods.settings import Settings
from ssvi.schedules import Schedule


@dataclass(frozen=True)
class About:
    """What is to be known of a method before it is run: a row of the paper's tables."""

    title: str
    text: str
    unit: str
    """What it removes: "weight", "channel" or "none"."""
    aims_at_density: bool
    """Whether `density` sets its sparsity. Where it does not, sparsity is an outcome, or there is none."""
    keeps_states: bool = False
    """Whether it keeps several networks, over which evaluation averages."""
    one_process: bool = False
    """Whether its weights would differ between the processes of a data-parallel run, so that it refuses several."""
    is_ours: bool = False
    """Whether it is the paper's own method, which stands in both of its tables."""
    lr: float = 0.05
    """The learning rate of a recipe that names none."""
    is_dense_vi: bool = False
    """Whether it is dense VI, the reference of the costs."""
    least_sparsity: float = 0.0
    """Where sparsity is an outcome: what a trial must reach to count. Otherwise the trial that removes nothing would win."""
    tuned_like: str | None = None
    """The method whose settings it takes instead of being tuned."""
    members_by: str | None = None
    """Of an ensemble: the method that trains each of its members, so that runs of that method can become one."""
    fixed_epochs: bool = False
    """Whether what it has done so far depends on the epochs of the recipe, so that a run cannot be trained longer."""


class Method(Protocol):
    """The members of a method's module, in their order."""

    @property
    def ABOUT(self) -> About:  # noqa: N802 - a constant of the module
        """What it is."""

    @property
    def Settings(self) -> type[Settings]:  # noqa: N802 - a class of the module
        """Its own settings, a frozen dataclass."""

    def epochs(self, settings: Any, epochs: int) -> int:
        """The epochs of the whole run, if one network has so many; an error if that is too few."""

    def network(self, job: Job[Any]) -> nn.Module:
        """The network that it trains."""

    def loss(self, job: Job[Any], net: nn.Module) -> Loss:
        """What it minimises."""

    def optimizer(self, job: Job[Any], net: nn.Module) -> tuple[Optimizer, Schedule]:
        """The optimiser or sampler, and the share of the learning rate at each step."""

    def after_step(self, job: Job[Any], net: nn.Module, optimizer: Optimizer, loss: Any) -> AfterStep:
        """What it does after each step."""

    def end_of_epoch(self, training: Training[Any], epoch: int) -> None:
        """Called when an epoch is trained."""

    def resume(self, training: Training[Any], epoch: int) -> None:
        """Called before a checkpoint is loaded, with which the run goes on at this epoch."""

    def product(self, training: Training[Any]) -> nn.Module:
        """The network that is saved and evaluated. It may be the trained one, changed in place."""

    @property
    def SEARCH(self) -> Search:  # noqa: N802 - a constant of the module
        """What tuning searches, and what it tries first."""


CPU = torch.device("cpu")

MEMBERS = (
    "ABOUT", "Settings", "epochs", "network", "loss", "optimizer", "after_step", "end_of_epoch", "resume", "product",
    "SEARCH",
)  # fmt: skip
"""The names of the members, in the order that every method keeps."""


def begin(method: Method, job: Job[Any], device: torch.device = CPU) -> Training[Any]:
    """Make everything that trains, in the order in which one needs the other.

    The network is made on the CPU, so that a seed gives the same one on every device, and moved before anything holds it.
    """
    net = method.network(job).to(device)
    loss = method.loss(job, net)
    optimizer, share = method.optimizer(job, net)
    # the members of an ensemble are trained one after the other, each by the whole schedule
    whole = schedules.repeated(schedules.stepwise(share, job.schedule_unit), job.steps)
    scheduler = LambdaLR(optimizer, whole)
    after_step = method.after_step(job, net, optimizer, loss)
    sampling = optimizer.sampled if isinstance(optimizer, IVON) else nullcontext
    return Training(job, net, optimizer, scheduler, loss, after_step, sampling)
