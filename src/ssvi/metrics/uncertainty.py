"""How uncertain a prediction is, and how much of that comes from not knowing the weights: per example, in nats."""

from __future__ import annotations

import torch
from torch import Tensor

from ._checks import checked_distributions


def entropy(probs: Tensor) -> Tensor:
    """H(p) = -sum_k p_k log p_k over the last axis, with 0 log 0 = 0, between 0 and log K; shape (...,)."""
    return _entropy(checked_distributions(probs, "probs").double())


def predictive_entropy(samples: Tensor) -> Tensor:
    """The total uncertainty H(mean_s p_s) from the probabilities (samples, examples, classes); shape (examples,)."""
    return _entropy(_checked_samples(samples).mean(0))


def mutual_information(samples: Tensor) -> Tensor:
    """The part of the uncertainty that the model causes, I = H(mean_s p_s) - mean_s H(p_s) >= 0; shape (examples,).

    `samples` is (samples, examples, classes). I is the mutual information between the class and the weights, at most
    the logarithm of the number of samples, and 0 if all samples agree. The rest, mean_s H(p_s), comes from the data.
    """
    samples = _checked_samples(samples)
    # Rounding can leave -1e-17 where all samples agree.
    return (_entropy(samples.mean(0)) - _entropy(samples).mean(0)).clamp_min(0)


def _entropy(probs: Tensor) -> Tensor:
    # A probability that rounding left above 1 would make it -1e-16.
    terms: Tensor = torch.special.entr(probs)
    return terms.sum(-1).clamp_min(0)


def _checked_samples(samples: Tensor) -> Tensor:
    return checked_distributions(samples, "samples", ("samples", "examples", "classes")).double()
