"""Decisions by expected cost: not every mistake costs the same, and an action need not be the name of a class.

With the cost C_ka of action a if the class is k, action a costs sum_k p_k C_ka on average. The best action is the one with
the least of these (Bayes decision rule); it can differ from naming the most probable class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ssvi.metrics.predictions import checked_distributions, checked_tensor

REJECT = "reject"
"""The name of the action that leaves the decision to somebody else."""


@dataclass(frozen=True)
class CostMatrix:
    """What each action costs in each class: a row for each class and a column for each action."""

    classes: tuple[str, ...]
    actions: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for field, names in (("classes", self.classes), ("actions", self.actions)):
            if not names or len(set(names)) < len(names):
                raise ValueError(f"{field}: expected names that all differ, got {', '.join(names) or 'none'}")
        widths = {len(row) for row in self.rows}
        if len(self.rows) != len(self.classes) or widths != {len(self.actions)}:
            raise ValueError(
                f"rows: expected {len(self.classes)} rows (classes) of {len(self.actions)} numbers (actions), got "
                f"{len(self.rows)} rows of {', '.join(map(str, sorted(widths))) or 'no'} numbers"
            )
        for name, row in zip(self.classes, self.rows, strict=True):
            if not all(map(math.isfinite, row)):
                raise ValueError(f"rows: the row of {name!r} is {row}; every cost must be a finite number")

    @cached_property
    def values(self) -> Tensor:
        """The costs as a tensor (classes, actions), float64."""
        return torch.tensor(self.rows, dtype=torch.float64)

    def with_reject(self, cost: float) -> CostMatrix:
        """The same with one more action, "reject", which costs the same in every class."""
        return CostMatrix(self.classes, (*self.actions, REJECT), tuple((*row, cost) for row in self.rows))


def expected_costs(probs: Tensor, costs: CostMatrix | Tensor) -> Tensor:
    """sum_k p_ik C_ka, the cost of each action for each example; (n, actions).

    `costs` is a `CostMatrix`, or a tensor (classes, actions) of finite numbers.
    """
    probs = checked_distributions(probs, "probs", ("examples", "classes")).double()
    return probs @ _values(costs, probs.shape[1])


def decide(probs: Tensor, costs: CostMatrix | Tensor, reject: float | None = None) -> Tensor:
    """The action with the least expected cost, (n,); of equal ones the first.

    With `reject` there is one more action, with the number of the actions that `costs` has: leave the decision to somebody
    else, at this cost. It is taken where every other action is expected to cost more.
    """
    expected = expected_costs(probs, costs)
    if reject is not None:
        if not math.isfinite(reject):
            raise ValueError(f"reject: expected a finite cost, got {reject!r}; None leaves this action out")
        expected = torch.cat([expected, torch.full_like(expected[:, :1], reject)], 1)
    return expected.argmin(1)


def _values(costs: CostMatrix | Tensor, classes: int) -> Tensor:
    values = costs.values if isinstance(costs, CostMatrix) else checked_tensor(costs, "costs").double()
    if values.dim() != 2 or len(values) != classes or not values.shape[1]:
        raise ValueError(
            f"costs: expected shape ({classes}, actions), a row for each class, got {tuple(values.shape)}; "
            "the costs of an action are a column"
        )
    if not values.isfinite().all():
        raise ValueError("costs: every cost must be a finite number; give forbidden actions a high cost")
    return values
