"""What a method is told of a run (`Job`), and the run that it makes of it (`Training`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from ssvi.inference.agreement import CriteriaIoU
from ssvi.inference.ivon import IVON
from ssvi.inference.loss import Terms
from ssvi.methods.settings import Settings

S_co = TypeVar("S_co", bound=Settings, covariant=True)


class States(Protocol):
    """The networks that a run keeps while it trains."""

    def keep(self, epoch: int, net: nn.Module) -> None:
        """Write the network of an epoch, whole or not at all."""

    def forget_from(self, epoch: int) -> None:
        """Delete what was kept in this epoch or later: it will be kept again."""

    def networks(self) -> Iterator[nn.Module]:
        """All that was kept, in the order of the epochs."""


@dataclass(frozen=True)
class Job(Generic[S_co]):
    """What a method is told of a run."""

    settings: S_co
    lr: float
    epochs: int
    """Epochs of one network: an ensemble trains each member for so many."""
    per_epoch: bool
    """Whether schedules change once per epoch and not at every step."""
    seed: int
    train_size: int
    steps_per_epoch: int
    fresh: Callable[[], nn.Module]
    """Makes a plain network with new random weights."""
    inputs: Callable[[], Iterator[Tensor]]
    """Goes once through the training images, augmented as in training."""
    states: States
    micro_batches: int = 1
    """Backward passes in a step: the parts of its batch."""
    nll: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    """(output, y) -> mean negative log-likelihood of a batch."""

    @property
    def steps(self) -> int:
        """Optimiser steps of one network."""
        return self.epochs * self.steps_per_epoch

    @property
    def schedule_unit(self) -> int:
        """Steps between two changes of a schedule."""
        return self.steps_per_epoch if self.per_epoch else 1


class Loss(Protocol):
    """Mean NLL of a batch -> what is minimised."""

    @property
    def terms(self) -> Terms:
        """What the last loss was made of."""

    def __call__(self, nll: Tensor) -> Tensor:
        """The loss of a batch whose mean negative log-likelihood is `nll`."""


@runtime_checkable
class HasState(Protocol):
    """What has a state that a checkpoint must hold."""

    def state_dict(self) -> dict[str, Any]:
        """The state, in values that `torch.save` takes."""

    def load_state_dict(self, state: dict[str, Any]) -> Any:
        """Go on from this state."""


class Work(NamedTuple):
    """What was done after a step, counted for the log and for the FLOPs."""

    moved: int = 0
    """Weights or channels that were switched."""
    dense_gradients: int = 0
    """Batches whose dense gradients were formed for an update of gamma."""
    proposals: int = 0
    """Proposals of a sampler of masks, accepted or not."""
    iou: CriteriaIoU | None = None
    """Of an update of gamma: how far the removal criteria agree, where that is recorded."""
    live: Mapping[str, int] | None = None
    """The live weights of each layer in this step, where their number changes from step to step."""


def _nothing(x: Tensor, y: Tensor) -> Work:
    return Work()


@dataclass(frozen=True)
class AfterStep:
    """What a method does after each optimiser step. `AfterStep()` does nothing."""

    act: Callable[[Tensor, Tensor], Work] = _nothing
    """Called with the batch."""
    state: HasState | None = None
    """Where it keeps what a checkpoint must hold; None if there is nothing, or if the loss keeps it."""
    replaces_step: Callable[[], bool] = lambda: False
    """Whether the optimiser leaves out its step on this batch."""
    rate: Callable[[], float] = lambda: 0.0
    """r_t of the last update of gamma."""
    revives: bool = False
    """Whether a weight that is zero may come back at any step, so that every step needs the gradients of all weights."""


@dataclass(frozen=True)
class Training(Generic[S_co]):
    """A run in progress: all that has a state, as the method made it."""

    job: Job[S_co]
    net: nn.Module
    optimizer: Optimizer
    scheduler: LambdaLR
    loss: Loss
    after_step: AfterStep
    sampling: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around forward and backward pass: an optimiser that wants one theta for the batch draws it there."""

    @property
    def one_theta(self) -> bool:
        """Whether a step has one theta for the batch, which halves its arithmetic (`flops.training`)."""
        return isinstance(self.optimizer, IVON)

    @property
    def clipped(self) -> list[nn.Parameter]:
        """The parameters whose gradients `clip` bounds: all but those of natural gradients, which have `clip_radius`."""
        groups = [group for group in self.optimizer.param_groups if group.get("kind") != "mu"]
        return [parameter for group in groups for parameter in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        """The states, by part."""
        return {name: part.state_dict() for name, part in self._stateful.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from these states."""
        for name, part in self._stateful.items():
            if name in state or name != "loss":  # earlier versions kept nothing of a loss that only reports the KL
                part.load_state_dict(state[name])

    def begin_again(self, fresh: Training[Any]) -> None:
        """Go on with another network, all states as in `fresh`; but the schedule goes on, which begins anew by itself."""
        for name, part in self._stateful.items():
            if part is not self.scheduler:
                part.load_state_dict(fresh._stateful[name].state_dict())

    @cached_property
    def _stateful(self) -> dict[str, HasState]:
        # the names are those of the checkpoint's format
        named: dict[str, HasState] = {"net": self.net, "optimizer": self.optimizer, "decay": self.scheduler}
        if isinstance(self.loss, HasState):
            named["loss"] = self.loss
        if self.after_step.state is not None:
            named["rule"] = self.after_step.state
        return named


class PlainNLL:
    """The loss of a point estimate: the negative log-likelihood alone, for weight decay is the optimiser's."""

    def __init__(self) -> None:
        self._last: Tensor | None = None

    def __call__(self, nll: Tensor) -> Tensor:
        """The mean negative log-likelihood as it is."""
        self._last = nll.detach()
        return nll

    @property
    def terms(self) -> Terms:
        """The last NLL; there is no divergence."""
        return Terms(0.0 if self._last is None else self._last.item(), 0.0, 0.0)
