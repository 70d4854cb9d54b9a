"""The likelihoods that a recipe can name."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from ssvi.likelihoods import Categorical, Gaussian, Likelihood, StudentT
from ssvi.methods.settings import RecipeError

AUTO = "auto"

FOR_NUMBERS: dict[str, Likelihood] = {
    "gaussian": Gaussian(),
    "gaussian-predicted": Gaussian("predicted"),
    "student-t": StudentT(),
    "student-t-predicted": StudentT("predicted"),
}
"""The noise is one number that is learnt, or predicted for each row; Student's t expects outliers."""

LIKELIHOODS = (AUTO, *FOR_NUMBERS)


def likelihood_of(name: str, classes: int) -> Likelihood:
    """The likelihood of that name for so many classes, or for a number, if there are none."""
    if not classes:
        return FOR_NUMBERS["gaussian" if name == AUTO else name]
    if name != AUTO:
        raise RecipeError(f"likelihood={name!r} is for numbers, but the target is a class: leave it out")
    return Categorical(classes)


def mean_nll(likelihood: Likelihood) -> Callable[[Tensor, Tensor], Tensor]:
    """(output, y) -> mean -log p(y | output) of a batch.

    For classes it is torch's own function: the same number, with the rounding that runs of earlier versions have.
    """
    return F.cross_entropy if isinstance(likelihood, Categorical) else likelihood.nll
