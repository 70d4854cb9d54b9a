"""Li, Miao, Qiu, Zhang: "Training Bayesian Neural Networks with Sparse Subspace Variational Inference", ICLR 2024 (SSVI),
trained as in the paper.

A Gaussian posterior on a sparse support, trained by the evidence lower bound with local reparameterisation; every M-th
step the weakest weights leave the support and the most useful ones come in (Algorithm 1). "Other mean-field variational
distributions can also be combined with our method": `posterior` names another family, with one theta for each batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import nn
from torch.optim import Optimizer

from ssvi.methods import common, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Allocation, Bound, Criteria, Family, SpreadDescent, Support
from ssvi.methods.job import AfterStep, Job, Loss
from ssvi.methods.search import Search
from ssvi.methods.settings import RecipeError, word_or_number

ABOUT = About(
    "SSVI, LRT", "sparse subspace variational inference by local reparameterisation, as in the paper", unit="weight",
    aims_at_density=True, is_ours=True,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Criteria, Bound, SpreadDescent, Family, Allocation, Support):
    """A sparse posterior, its bound, and the updates of gamma."""


epochs = common.as_asked
network = partial(common.at_density, gaussian=common.of_family)
loss = common.bound
optimizer = common.spread_descent


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Updates of gamma by the criteria of the recipe."""
    settings = job.settings
    if settings.record_iou and settings.posterior != "gaussian":
        raise RecipeError(
            f"record_iou compares formulas for Gaussian posteriors, and posterior={settings.posterior!r} is none: leave one "
            "of the two out"
        )
    return common.update_gamma(
        job, net, optimizer, loss, removal=settings.removal, addition=settings.addition,
        fresh_sigma=word_or_number(settings.fresh_sigma), record_iou=settings.record_iou,
    )  # fmt: skip


end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = Search(
    searches.BAYESIAN,
    first=(searches.AUTHORS_OF_SSVI | {"fresh_sigma": "mean_rho"},),
)
