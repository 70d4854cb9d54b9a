"""Temperature scaling (Guo et al. 2017): one number that makes probabilities less certain, or more.

The scaled probabilities are p_T = softmax(log p / T). T > 1 makes them less certain, T < 1 more certain; the most probable
class stays the same. For a Bayesian network p is the average over the samples of theta, so T corrects the prediction that
is used, and not that of each sample.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssvi.metrics.predictions import checked_distributions, checked_predictions, checked_tensor

LOWEST, HIGHEST = 0.01, 100.0
"""The range of T. If every example is right, the likelihood rises until T = 0: then T is the lower end."""
STEPS = 60
"""Halvings of the range of log T: afterwards it is smaller than the rounding error of float64."""


def fit_temperature(probs: Tensor, labels: Tensor) -> float:
    """The T in [0.01, 100] that minimises the NLL of softmax(log p / T) on validation examples.

    `probs` is (n, K), or (samples, n, K), which is averaged first. With b = 1 / T and z = log p the NLL
    mean_i [log sum_k exp(b z_ik) - b z_iy] is convex in b, and its slope is mean_i [E_b z_i - z_iy]. The slope changes its
    sign once, so halving the range finds the minimum; no step size is needed.
    """
    probs = checked_tensor(probs, "probs")
    probs, labels = checked_predictions(probs.mean(0) if probs.dim() == 3 else probs, labels)
    z = _log(probs)
    of_label = z.gather(1, labels[:, None]).squeeze(1)
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(STEPS):
        middle = (low + high) / 2
        slope = ((z * (z * math.exp(-middle)).softmax(1)).sum(1) - of_label).mean()
        if slope > 0:  # the NLL grows with b = 1 / T, so the best T is higher
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


def scaled(probs: Tensor, temperature: float) -> Tensor:
    """softmax(log p / T) over the last axis, in float64.

    A probability of exactly 0 is taken to be the smallest positive normal number of its precision, as in `metrics.nll`.
    """
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature: expected a positive number, got {temperature!r}; fit_temperature gives one")
    return (_log(checked_distributions(probs, "probs")) / temperature).softmax(-1)


def _log(probs: Tensor) -> Tensor:
    return probs.double().clamp_min(torch.finfo(probs.dtype).tiny).log()
