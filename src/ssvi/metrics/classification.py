"""One number per example: how wrong a prediction is (accuracy, proper scores; averaged), and how uncertain, in nats."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from .predictions import checked_distributions, checked_predictions


def accuracy(probs: Tensor, labels: Tensor) -> float:
    """The share of examples whose most probable class is the label, 1/n sum_i 1[argmax_k p_ik = y_i].

    If several classes are equally probable, the first is taken.
    """
    return float(hits(probs, labels).mean())


def nll(probs: Tensor, labels: Tensor) -> float:
    """The negative log-likelihood in nats, -1/n sum_i log p_i,y_i.

    If the label has probability exactly 0, the loss is infinite in theory, but in practice the 0 comes from underflow. So
    p is taken to be at least the smallest positive normal number of its precision: one example costs at most 87.3 nats if
    `probs` is float32 and 708.4 if it is float64.
    """
    return float(surprisals(probs, labels).mean())


def brier(probs: Tensor, labels: Tensor) -> float:
    """The Brier score over all classes, 1/n sum_i sum_k (p_ik - 1[y_i = k])^2, between 0 and 2.

    For two classes it is twice the score that looks at one of them only.
    """
    return float(squared_errors(probs, labels).mean())


def hits(probs: Tensor, labels: Tensor) -> Tensor:
    """1 where the most probable class is the label, else 0; shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    return (probs.argmax(1) == labels).double()


def surprisals(probs: Tensor, labels: Tensor) -> Tensor:
    """-log p_i,y_i; shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    of_label = probs.gather(1, labels[:, None]).squeeze(1)
    return -of_label.double().clamp_min(torch.finfo(probs.dtype).tiny).log()


def squared_errors(probs: Tensor, labels: Tensor) -> Tensor:
    """sum_k (p_ik - 1[y_i = k])^2; shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    return (probs.double() - one_hot(labels, probs.shape[1])).square().sum(1)


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
