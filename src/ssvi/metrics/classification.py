"""Proper scores and accuracy: averages over the examples of one number per example."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ._checks import checked_predictions


def accuracy(probs: Tensor, labels: Tensor) -> float:
    """The share of examples whose most probable class is the label, 1/n sum_i 1[argmax_k p_ik = y_i].

    Of equally probable classes the first counts.
    """
    return float(hits(probs, labels).mean())


def nll(probs: Tensor, labels: Tensor) -> float:
    """The negative log-likelihood in nats, -1/n sum_i log p_i,y_i.

    A probability of exactly 0 for what happened is an infinite loss in theory and underflow in practice, so p is taken
    to be at least the smallest positive normal number of the precision it came in: one example costs at most 87.3 nats
    if `probs` is float32 and 708.4 if it is float64.
    """
    return float(surprisals(probs, labels).mean())


def brier(probs: Tensor, labels: Tensor) -> float:
    """The Brier score over all classes, 1/n sum_i sum_k (p_ik - 1[y_i = k])^2, between 0 and 2.

    For two classes it is twice the score that looks at one of them only.
    """
    return float(squared_errors(probs, labels).mean())


def hits(probs: Tensor, labels: Tensor) -> Tensor:
    """1 where the most probable class is the label, else 0, of shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    return (probs.argmax(1) == labels).double()


def surprisals(probs: Tensor, labels: Tensor) -> Tensor:
    """-log p_i,y_i, of shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    picked = probs.gather(1, labels[:, None]).squeeze(1)
    return -picked.double().clamp_min(torch.finfo(probs.dtype).tiny).log()


def squared_errors(probs: Tensor, labels: Tensor) -> Tensor:
    """sum_k (p_ik - 1[y_i = k])^2, of shape (n,)."""
    probs, labels = checked_predictions(probs, labels)
    return (probs.double() - one_hot(labels, probs.shape[1])).square().sum(1)
