"""Calibration: does what is predicted with probability p happen with frequency p? Errors over bins of p.

Two of these numbers are called "ECE" in publications and differ by a factor of about ten: `ece` is that of Guo et al.
(2017), `marginal_calibration_error` is what the SSVI and mBNN papers report. Never compare one with the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ._binning import Sorted, edges_of_values, equal_mass, equal_width, fill_bins
from .predictions import checked_count, checked_predictions

BINS = 15
"""The number of bins in the papers."""


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram: counts and means of B bins of the confidence. The means of an empty bin are NaN."""

    edges: Tensor  # (B + 1,): bin b is (edges[b], edges[b + 1]]
    count: Tensor  # (B,)
    confidence: Tensor  # (B,): mean confidence
    accuracy: Tensor  # (B,): share of correct predictions

    @property
    def error(self) -> float:
        """sum_b n_b/n |accuracy_b - confidence_b|, the expected calibration error over these bins."""
        gap = (self.accuracy - self.confidence).abs()
        return float((self.count * gap).nansum() / self.count.sum())


def ece(probs: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """The expected calibration error of the top label, Guo et al. 2017, between 0 and 1.

    ECE = sum_b n_b/n |acc_b - conf_b|, over the confidences max_k p_ik in B bins of equal width, ((b-1)/B, b/B]. So a
    confidence of exactly 1 belongs to the last bin; empty bins add nothing. Its bias is not corrected: with few examples
    per bin even a perfectly calibrated model has a positive ECE.
    """
    return reliability(probs, labels, bins).error


def adaptive_ece(probs: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """The expected calibration error of the top label over bins of equal mass.

    As `ece`, but the bins hold (nearly) equally many confidences; equal confidences are never separated, and n < B
    examples make n bins. The edges are those of `marginal_calibration_error`.
    """
    return reliability(probs, labels, bins, adaptive=True).error


def reliability(probs: Tensor, labels: Tensor, bins: int = BINS, adaptive: bool = False) -> Reliability:
    """The bins behind `ece` (or, if `adaptive`, behind `adaptive_ece`), for a reliability diagram."""
    checked_count(bins, "bins")
    points = sorted_top_label(probs, labels)
    return weighted_reliability(points, torch.ones_like(points.order), bins, adaptive)


def marginal_calibration_error(probs: Tensor, labels: Tensor, bins: int | None = BINS) -> float:
    """The debiased class-wise L2 calibration error (Kumar et al. 2019), the "ECE" of the SSVI paper's tables.

    For each class k, with v_i = p_ik and t_i = 1[y_i = k], over B bins of equal mass:
        c_k^2 = max(0, sum_{b: n_b >= 2} n_b/n [(mean_b v - mean_b t)^2 - mean_b t (1 - mean_b t) / (n_b - 1)])
    and the result is sqrt(1/K sum_k c_k^2). The sorted v are cut into B runs as equal as possible (the longer ones
    first), an edge lies midway between the neighbours of a cut, and a value belongs to the first bin whose upper edge
    is not below it. So equal values are never separated, and n < B examples make n bins.

    A bin of one example has no variance and counts 0; with n <= B examples without ties the result is therefore 0. A class
    that never occurs counts like any other. Of many classes most are near 0, so the number falls with K: compare it
    only at equal K.

    This equals get_calibration_error of uncertainty-calibration 0.1.4, with one difference. If every class has fewer
    than n/4 distinct values (saturated or half-precision outputs) the library silently takes one bin per distinct value
    instead. Here the definition never depends on the data; `bins=None` gives one bin per distinct value.
    """
    bins = bins if bins is None else checked_count(bins, "bins")
    return class_wise_error(sorted_classes(probs, labels), torch.ones(len(labels), dtype=torch.long), bins)


def sorted_top_label(probs: Tensor, labels: Tensor) -> Sorted:
    """The confidence max_k p_ik of each example, and whether the predicted class is the label, (n,)."""
    probs, labels = checked_predictions(probs, labels)
    guess = probs.argmax(1)
    return Sorted.of(probs.gather(1, guess[:, None]).squeeze(1), guess == labels)


def sorted_classes(probs: Tensor, labels: Tensor) -> Sorted:
    """For each class its probabilities, and whether it is the label, (K, n)."""
    probs, labels = checked_predictions(probs, labels)
    return Sorted.of(probs.T.contiguous(), one_hot(labels, probs.shape[1]).T)


def weighted_reliability(points: Sorted, weights: Tensor, bins: int = BINS, adaptive: bool = False) -> Reliability:
    """`reliability` of weighted examples."""
    w = points.in_order(weights)
    upper = equal_mass(points, w, bins) if adaptive else equal_width(bins)
    filled = fill_bins(points, w, upper)
    return Reliability(torch.cat([upper.new_zeros(1), upper]), filled.count, filled.mean_v, filled.mean_t)


def class_wise_error(points: Sorted, weights: Tensor, bins: int | None = BINS) -> float:
    """`marginal_calibration_error` of weighted examples."""
    return float(class_wise_squares(points, weights, bins).clamp_min(0).mean().sqrt())


def class_wise_squares(points: Sorted, weights: Tensor, bins: int | None = BINS) -> Tensor:
    """The debiased squared error c_k^2 of each class, before it is clipped at 0, (K,).

    For given bins its expectation is the true squared error of the bins: 0 if the predictions are calibrated. So it is below
    0 about as often as above.
    """
    w = points.in_order(weights)
    b = fill_bins(points, w, edges_of_values(points) if bins is None else equal_mass(points, w, bins))
    excess = (b.mean_v - b.mean_t).square() - b.mean_t * (1 - b.mean_t) / (b.count - 1)
    return (b.count * excess.where(b.count >= 2, 0)).sum(-1) / weights.sum()
