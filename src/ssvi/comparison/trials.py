"""The settings that tuning tries: the same number for each method, so that no method gets more care than another.

A trial holds what differs from the recipe: for most methods the learning rate and the strength of regularisation; for
methods whose sparsity is a result, the settings that control it. An ensemble takes the settings of `deterministic`, because
its members are such networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from ssvi.comparison import facts

Settings = dict[str, str | float]
"""Fields of a recipe and their values: what a trial changes."""

BUDGET = 6
"""Trials for each method."""


def _grid(**choices: Sequence[str | float]) -> list[Settings]:
    """Every combination of the choices."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


_BAYESIAN = _grid(lr=(0.05, 0.1), beta_max=(0.03, 0.1, 0.3))
_POINT = _grid(lr=(0.02, 0.05, 0.1), weight_decay=(0.0, 5e-4))
_PRUNED = _grid(prune_scope=("layer", "global"), beta_max=(0.1, 0.3, 1.0))

TRIALS: dict[str, list[Settings]] = {
    "ssvi": _BAYESIAN,
    "vi": _BAYESIAN,
    "deterministic": _POINT,
    "snr-prune": _PRUNED,
    "snr-finetune": _PRUNED,
    "rigl": _POINT,
    "set": _POINT,
    "static": _POINT,
    "vd": _grid(lr=(0.05, 0.1), beta_max=(0.05, 0.1, 0.3)),
    "group-vd": _grid(optimizer=("adam",), lr=(3e-3,), sigma_lr=(1e-2, 3e-2), beta_max=(0.1, 0.3, 1.0)),
    "sbp": _grid(optimizer=("adam",), lr=(3e-3,), sigma_lr=(1e-2, 3e-2), beta_max=(0.3, 1.0, 3.0)),
    "aeb": [
        {"v0": v0, "v1": v1, "temperature": temperature, "weight_decay": 5e-4}
        for (v0, v1), temperature in product(((1.0, 0.1), (0.5, 0.01)), (1e-3, 0.1, 1.0))
    ],
    "mbnn": _grid(lr=(0.2,), every=(1,), prior_sigma=(0.1,), temperature=(1e-3, 1e-2), lam=(0.075, 0.1, 0.15)),
}

LIKE = {"ensemble": "deterministic"}
"""Methods that are not tuned, and whose settings they take."""

FLOORS = {"weight": 0.9, "channel": 0.5}
"""How sparse a network must be where sparsity is a result, by what the method removes: without this floor the best trial
would be one that removes nothing."""


def tuned_methods() -> list[str]:
    """The methods that have trials."""
    return list(TRIALS)


def trials_of(method: str) -> list[Settings]:
    """What tuning tries for a method."""
    return TRIALS[method]


def followers(method: str) -> list[str]:
    """The methods that are not tuned and take the settings of this one."""
    return [follower for follower, leader in LIKE.items() if leader == method]


def sparsity_floor(method: str) -> float:
    """How sparse a trial of the method must be; 0 where its sparsity is set, or where it removes nothing."""
    if facts.aims_at_density(method) or facts.unit(method) == "none":
        return 0.0
    return FLOORS[facts.unit(method)]
