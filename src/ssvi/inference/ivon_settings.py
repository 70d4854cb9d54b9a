"""The settings of IVON: the start of its state, the parameter groups that hold them, loading, and the step of the rest.

mu of each layer moves by natural gradients, and everything else by SGD beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi.inference import eager_methods
from ssvi.kernels.ivon import H_STEP
from ssvi.nn.conversion_rules import matching
from ssvi.nn.layers import gaussians
from ssvi.schedules import Schedule

H_START = 0.1
"""The least start of h that is taken from sigma: below it the first steps would be too long."""
LEAST_MEMORY = 50
"""The fewest steps over which the curvature is averaged: one step sees it with much noise."""

Group = dict[str, Any]
"""A parameter group of torch: "params", and the settings of their steps."""


def start_of_h(sigma2: Tensor, train_size: int, delta: float, h0: float | None) -> tuple[Tensor, Tensor]:
    """The start of h, and what of it has no part in the steps.

    That is `h0` and nothing; or, if it is None, the h that gives this sigma^2 at temperature 1, but at least `H_START`, and
    how far it is above `H_STEP` on average.
    """
    if h0 is not None:
        return torch.full_like(sigma2, h0), sigma2.new_zeros(())
    h = (1 / (train_size * sigma2) - delta).clamp_min(H_START)
    return h, (h.mean() - H_STEP).clamp_min(0)


def b2_with_memory(steps: float) -> float:
    """The b2 whose average reaches over so many steps, but at least `LEAST_MEMORY`: 1 - 1 / steps."""
    return 1 - 1 / max(LEAST_MEMORY, steps)


def positive_at(schedule: Schedule, step: int, name: str) -> float:
    """The value of a schedule that must be positive at every step."""
    if not (value := schedule(step)) > 0:
        raise ValueError(f"{name}={value!r} at step {step} must be positive: begin with a little, not with 0")
    return value


def plain_step(optimizer: Optimizer, samples: int) -> None:
    """SGD with momentum and weight decay for the rest, as torch's; the gradients are sums over so many samples of theta."""
    for group in optimizer.param_groups:
        parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
        if group["kind"] == "rest" and parameters:  # all may be frozen; torch refuses an empty list
            velocities = [_velocity(optimizer, parameter) for parameter in parameters]
            torch._foreach_mul_(velocities, group["momentum"])
            torch._foreach_add_(velocities, [parameter.grad for parameter in parameters], alpha=1 / samples)
            if decay := group.get("weight_decay", 0.0):  # a state that was saved before this setting has none
                torch._foreach_add_(velocities, parameters, alpha=decay)
            torch._foreach_sub_(parameters, velocities, alpha=group["lr"])


def _velocity(optimizer: Optimizer, parameter: nn.Parameter) -> Tensor:
    state = optimizer.state[parameter]
    if "momentum_buffer" not in state:
        state["momentum_buffer"] = torch.zeros_like(parameter)
    velocity: Tensor = state["momentum_buffer"]
    return velocity


def load_state(optimizer: Optimizer, saved: dict[str, Any]) -> None:
    """Load a saved state, with the values of each parameter as they are; torch would give them the dtype of mu."""
    saved = _with_frozen(optimizer, saved)
    eager_methods.load_state_dict(optimizer, saved)
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(numbers, parameters, strict=True):
        values = saved["state"].get(number, {})
        optimizer.state[parameter].update({key: value.to(parameter.device, copy=True) for key, value in values.items()})


def _with_frozen(optimizer: Optimizer, saved: dict[str, Any]) -> dict[str, Any]:
    """The same with a number for every parameter of the rest. Earlier versions left out those that were frozen."""
    rest, groups = optimizer.param_groups[-1], saved["param_groups"]
    old = [number for group in groups if group.get("kind") == "rest" for number in group["params"]]
    first = sum(len(group["params"]) for group in groups) - len(old)
    free = [first + i for i, parameter in enumerate(rest["params"]) if parameter.requires_grad]
    if rest["kind"] != "rest" or len(old) == len(rest["params"]) or len(old) != len(free):
        return saved
    natural, number = [group for group in groups if group["kind"] != "rest"], dict(zip(old, free, strict=True))
    group = (groups[-1] if old else rest) | {"params": list(range(first, first + len(rest["params"])))}
    state = {number.get(n, n): values for n, values in saved["state"].items()}
    return saved | {"state": state, "param_groups": [*natural, group]}


def parameter_groups(bnn: nn.Module, natural: Group, plain: Group, own: Mapping[str, Mapping[str, Any]]) -> list[Group]:
    """One natural group for the layers without settings of their own, one for each pattern of `own`, and the rest.

    Args:
        natural: the settings of a natural step.
        plain: the settings of the steps of the rest.
        own: names or patterns of layers, each with settings that differ from `natural`. The first that matches counts.
    """
    posteriors = gaussians(bnn)
    left = dict(posteriors)
    groups = []
    for pattern, settings in own.items():
        _check_own(pattern, settings, natural)
        chosen = [left.pop(name).mu for name in matching(posteriors, [pattern], "groups") if name in left]
        groups.append(natural | dict(settings) | {"params": chosen})
    groups.insert(0, natural | {"params": [posterior.mu for posterior in left.values()]})
    bayesian = {id(p) for posterior in posteriors.values() for p in (posterior.mu, posterior.rho)}
    # Frozen ones too: they have no gradient now, and are trained when they are unfrozen.
    groups.append(plain | {"params": [p for p in bnn.parameters() if id(p) not in bayesian]})
    return [group for group in groups if group["params"]]


def _check_own(pattern: str, settings: Mapping[str, Any], natural: Group) -> None:
    for name in settings:
        if name not in natural or name in ("kind", "step"):
            raise ValueError(f"groups[{pattern!r}] has {name!r}: a group of layers may set lr, betas and clip_radius")
