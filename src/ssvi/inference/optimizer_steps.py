"""How many steps the optimisers of a network have taken: torch's own hooks tell, so that a user need not.

A loss is called once for each micro-batch, and a closure may run several times in a step. Only the optimiser knows when a
step is done. torch calls a hook after every step of every `torch.optim.Optimizer`, also of one that a framework has
wrapped. The hook is removed together with the object here that it serves.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from torch import nn
from torch.optim import LBFGS, Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def refuse_line_searches(optimizers: Iterable[Optimizer]) -> None:
    """LBFGS is an error, whatever it trains: it compares losses and gradients that differ by their noise alone."""
    for optimizer in optimizers:
        if isinstance(optimizer, LBFGS):
            raise ValueError(
                f"optimizer: {type(optimizer).__name__} cannot train a Bayesian network: every evaluation of its closure "
                "draws another theta, and its history cannot follow a change of the support. Take SGD, Adam or ssvi.IVON"
            )


class OptimizerSteps:
    """Counts the steps of all optimisers that hold a parameter of a network."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net
        self._known = weakref.WeakKeyDictionary[Optimizer, tuple[int, bool]]()
        """By optimiser: the number of its parameter groups, and whether they hold a parameter of the network."""
        self.taken = 0
        """Steps that are done."""
        self.begun = 0
        """Steps that are done or under way."""
        self._asked_in = 0
        self._listen()

    def is_repeated_in_closure(self) -> bool:
        """Whether this moment is in the closure of a step, and this was asked in the same step before."""
        before, self._asked_in = self._asked_in, self.begun
        return self.begun > self.taken and before == self.begun

    def begin(self, optimizer: Optimizer) -> None:
        """An optimiser is about to step. One that failed in an earlier step is forgotten."""
        if self._trains_net(optimizer):
            refuse_line_searches([optimizer])
            self.begun = self.taken + 1

    def end(self, optimizer: Optimizer) -> None:
        """An optimiser has stepped."""
        if self._trains_net(optimizer):
            self.taken = self.begun = self.taken + 1

    def _trains_net(self, optimizer: Optimizer) -> bool:
        """Whether it holds a parameter of the network. It is asked at every step of every optimiser, so it is remembered."""
        groups = len(optimizer.param_groups)
        if self._known.get(optimizer, (0, False))[0] != groups:
            parameters = {id(p) for p in self.net.parameters()}
            holds = any(id(p) in parameters for group in optimizer.param_groups for p in group["params"])
            self._known[optimizer] = groups, holds
        return self._known[optimizer][1]

    def _listen(self) -> None:
        """Weakly, so that the hooks do not keep a network alive that nothing else needs."""
        me = weakref.ref(self)

        def begin(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            if (counter := me()) is not None:
                counter.begin(optimizer)

        def end(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            if (counter := me()) is not None:
                counter.end(optimizer)

        handles = register_optimizer_step_pre_hook(begin), register_optimizer_step_post_hook(end)
        for handle in handles:
            weakref.finalize(self, handle.remove).atexit = False

    def __reduce__(self) -> tuple[type[OptimizerSteps], tuple[nn.Module]]:
        """A copy, or a pickle that is read, counts from 0."""
        return OptimizerSteps, (self.net,)


class LossSteps:
    """The number of the training step that a call of a loss belongs to.

    Args:
        net: the network that is trained.
        micro_batches: calls per step. None: a step is over when an optimiser that holds a parameter of the network has
            stepped. As long as none has, and in training without torch's optimisers, every call is a step.
    """

    def __init__(self, net: nn.Module, micro_batches: int | None) -> None:
        self._optimizers = OptimizerSteps(net) if micro_batches is None else None
        self._micro_batches = micro_batches or 1
        self._taken_at_call: int | None = None
        self.start_from(0)

    @property
    def number(self) -> int:
        """The steps before the coming call: 0 for the first."""
        if self._optimizers is None or not self._optimizers.taken:
            return self._start + self._calls // self._micro_batches
        return self._start + self._steps + self._has_stepped

    @property
    def _has_stepped(self) -> bool:
        """Whether a step was done since the last call. Several optimisers that step one after the other do one step."""
        assert self._optimizers is not None
        return self._taken_at_call is not None and self._optimizers.taken > self._taken_at_call

    def count_call(self) -> None:
        """The loss was called with gradients enabled."""
        self._calls += 1
        if self._optimizers is not None:
            self._steps += self._has_stepped
            self._taken_at_call = self._optimizers.taken

    def start_from(self, number: int) -> None:
        """The coming call belongs to the step of this number."""
        self._start, self._calls, self._steps, self._taken_at_call = number, 0, 0, None
