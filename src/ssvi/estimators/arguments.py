"""The arguments of an estimator, which `fit` checks: scikit-learn's rule is that `__init__` only stores them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch

from ssvi.estimators.errors import EstimatorError


def check_arguments(estimator: Any) -> None:
    """Refuse arguments that cannot be used; those of a network that is converted are checked there."""
    check_share("density", estimator.density, "0.5 keeps half of the weights")
    check_share("rate", estimator.rate, "it is the share of live weights that the first update of gamma replaces")
    check_hidden(estimator.hidden)
    check_count("batch_size", estimator.batch_size, "it is the number of examples in a step")
    check_count("samples", estimator.samples, "it is the number of draws of theta that a prediction averages")
    check_count("every", estimator.every, "it is the number of steps between two updates of gamma")
    if estimator.epochs is not None:
        check_count("epochs", estimator.epochs, "it is the number of passes; None chooses it by the data")
    if estimator.lr is not None:
        check_positive("lr", estimator.lr, "it is the learning rate of IVON; None is 0.1")
    if estimator.prior_sigma is not None:
        check_positive("prior_sigma", estimator.prior_sigma, "None is what the live weights per output ask for")


def check_count(name: str, value: Any, remedy: str) -> None:
    """Refuse what is not a whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise EstimatorError(f"{name}={value!r} must be a whole number of at least 1: {remedy}")


def check_share(name: str, value: Any, remedy: str) -> None:
    """Refuse what is not a number in (0, 1]."""
    if not _is_real(value) or not 0 < value <= 1:
        raise EstimatorError(f"{name}={value!r} must be in (0, 1]: {remedy}")


def check_positive(name: str, value: Any, remedy: str) -> None:
    """Refuse what is not a positive number."""
    if not _is_real(value) or not 0 < value < math.inf:
        raise EstimatorError(f"{name}={value!r} must be a positive number: {remedy}")


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)


def check_hidden(hidden: Any) -> None:
    """Refuse what is not a sequence of numbers of units."""
    if not isinstance(hidden, Sequence) or isinstance(hidden, str):
        raise EstimatorError(f"hidden={hidden!r} must be a tuple, the units of each hidden layer: (50,) for example")
    for units in hidden:
        check_count("hidden", units, f"hidden={hidden!r} has the units of each hidden layer")


def device_called(name: Any) -> torch.device:
    """The device, if it can be used here."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise EstimatorError(f"device={name!r} cannot be used here: {reason}. Take one that is there: 'cpu'") from error
    return device
