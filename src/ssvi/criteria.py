"""Removal criteria (Section 3.3.1): (mu, sigma) -> score of each live weight. The weights with the lowest scores go.

Only the order of the scores is ever used. A criterion is any function of two tensors; these are the paper's six, and two
controls, for Gaussian posteriors; `resolve` has those of other families. Criteria 2 and 4 order the weights in the same
way: SNR(|theta|) is a strictly increasing function of |mu| / sigma (docs/criteria.md has the proof,
and what the paper's float32 formula did instead).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ssvi.families import Family, Gaussian
from ssvi.math import gaussian, textbook

Criterion = Callable[[Tensor, Tensor], Tensor]

_TIE_BREAK = 1e-7


def _check_lambda(lam: float) -> None:
    if not lam > 0:
        raise ValueError(f"lam={lam!r} must be positive: exp(lam |theta|) has to grow with |theta|")


def abs_mu(mu: Tensor, sigma: Tensor) -> Tensor:
    """Criterion 1: |mu|."""
    return mu.abs()


def snr(mu: Tensor, sigma: Tensor) -> Tensor:
    """Criterion 2: SNR(theta) = |mu| / sigma."""
    return gaussian.ratio(mu, sigma)


def mean_abs(mu: Tensor, sigma: Tensor) -> Tensor:
    """Criterion 3: E|theta| (Eq. 6)."""
    return gaussian.mean_abs(mu, sigma)


def snr_abs(mu: Tensor, sigma: Tensor) -> Tensor:
    """Criterion 4, the paper's default: SNR(|theta|) (Eq. 7).

    It is computed from the same float r = |mu| / sigma as criterion 2. Near r = 0 it is flat (1.3236 + O(r^4)), so no
    float could tell such weights apart; 1e-7 log r is added, which changes the value by less than 1e-5 of itself and
    restores the order of r.
    """
    return _with_the_order_of_r(gaussian.snr_abs, mu, sigma)


def _with_the_order_of_r(snr_abs: Callable[[Tensor], Tensor], mu: Tensor, sigma: Tensor) -> Tensor:
    r = gaussian.ratio(mu, sigma).double()
    smallest = torch.finfo(torch.float32).tiny * torch.finfo(torch.float32).eps  # the first positive float32
    return snr_abs(r) + _TIE_BREAK * r.clamp_min(0.5 * smallest).log()


def mean_exp_abs(lam: float = 1.0) -> Criterion:
    """Criterion 5: E exp(lambda |theta|) (Eq. 8). Returns its logarithm, which has the same order and cannot overflow."""
    _check_lambda(lam)
    return partial(gaussian.log_mean_exp_abs, lam=lam)


def snr_exp_abs(lam: float = 1.0) -> Criterion:
    """Criterion 6: SNR(exp(lambda |theta|)) (Eq. 8). Returns its logarithm."""
    _check_lambda(lam)
    return partial(gaussian.log_snr_exp_abs, lam=lam)


def random(mu: Tensor, sigma: Tensor) -> Tensor:
    """Control: a random score, so the removed weights are a random choice."""
    return torch.rand_like(mu)


def snr_abs_textbook(mu: Tensor, sigma: Tensor) -> Tensor:
    """Control: Eq. 7 as printed, in the precision of its arguments. In float32 it orders small |mu|/sigma by rounding."""
    return textbook.snr_abs(mu, sigma)


BY_NAME: dict[str, Criterion] = {
    "abs_mu": abs_mu,
    "snr": snr,
    "mean_abs": mean_abs,
    "snr_abs": snr_abs,
    "mean_exp_abs": mean_exp_abs(),
    "snr_exp_abs": snr_exp_abs(),
    "random": random,
    "snr_abs_textbook": snr_abs_textbook,
}
"""What a string means where a criterion is expected. Criteria 5 and 6 have lambda = 1 here."""

OF_PAPER = ("abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs", "snr_exp_abs")
"""The names of criteria 1 to 6, in this order."""

AS_PRINTED: dict[str, Criterion] = {
    "abs_mu": abs_mu,
    "snr": lambda mu, sigma: mu.abs() / sigma,
    "mean_abs": textbook.mean_abs,
    "snr_abs": snr_abs_textbook,
    "mean_exp_abs": lambda mu, sigma: textbook.mean_exp_abs(mu, sigma, 1.0),
    "snr_exp_abs": lambda mu, sigma: textbook.snr_exp_abs(mu, sigma, 1.0),
}
"""Criteria 1 to 6 by the formulas of the paper, in the precision of their arguments; lambda = 1. In float32 their scores may
be infinite or NaN. Only to be compared with (docs/criteria.md)."""


_EXPONENTIAL = (gaussian.log_mean_exp_abs, gaussian.log_snr_exp_abs)


def resolve(criterion: str | Criterion, family: Family | None = None) -> Criterion:
    """The criterion of that name, or the function itself; for weights of this family, without which they are Gaussian.

    Criteria 1 and 2 are the same in all families, and so is a function of the user's own. 3 and 4 are those of the family.
    5 and 6 are errors but for the Gaussian: the mean of exp(lambda |theta|) may be infinite, and is for Student's t.
    """
    found = _resolve(criterion)
    if family is None or isinstance(family, Gaussian):
        return found
    if found in (mean_abs, snr_abs):
        family.excess(torch.zeros(()))  # what it lacks is an error now, and not at the first update
        return family.mean_abs if found is mean_abs else partial(_with_the_order_of_r, family.snr_abs)
    if found is snr_abs_textbook or (isinstance(found, partial) and found.func in _EXPONENTIAL):
        raise ValueError(
            f"removal={criterion!r} is a formula for Gaussian posteriors, and this one is {family}: take one of abs_mu, "
            "snr, mean_abs, snr_abs, random, or pass a function (mu, sigma) -> score"
        )
    return found


def _resolve(criterion: str | Criterion) -> Criterion:
    if callable(criterion):
        return criterion
    if criterion not in BY_NAME:
        raise ValueError(
            f"removal={criterion!r} is not a criterion: take one of {', '.join(BY_NAME)}, "
            "or pass a function (mu, sigma) -> score"
        )
    return BY_NAME[criterion]
