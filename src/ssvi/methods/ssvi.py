"""Li, Miao, Qiu, Zhang: "Training Bayesian Neural Networks with Sparse Subspace Variational Inference", ICLR 2024 (SSVI),
trained by natural gradients.

A Gaussian posterior on a sparse support; every M-th step the weakest weights leave the support and the most useful ones
come in (Algorithm 1). The posterior is trained by IVON (`ssvi.inference.ivon`): each batch has one theta, sigma comes from
the curvature, and the KL has no multiplier. A step takes half the arithmetic of one by local reparameterisation, which is
the method `ssvi-lrt`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from torch import nn
from torch.optim import Optimizer

from ssvi.methods import common, natural, searches
from ssvi.methods.base import About
from ssvi.methods.groups import Allocation, Selection, Support
from ssvi.methods.job import AfterStep, Job, Loss
from ssvi.methods.natural import NaturalGradients

ABOUT = About(
    "SSVI", "sparse subspace variational inference by natural gradients", unit="weight", aims_at_density=True,
    is_ours=True, lr=natural.LR,
)  # fmt: skip


@dataclass(frozen=True)
class Settings(Selection, NaturalGradients, Allocation, Support):
    """A sparse Gaussian posterior, its natural gradients, and the updates of gamma."""


epochs = common.as_asked
network = partial(common.at_density, gaussian=natural.gaussian)
loss = natural.loss
optimizer = natural.optimizer


def after_step(job: Job[Settings], net: nn.Module, optimizer: Optimizer, loss: Loss) -> AfterStep:
    """Updates of gamma by the criteria of the recipe; a fresh weight has the mean curvature of its layer."""
    settings = job.settings
    return common.update_gamma(
        job, net, optimizer, loss, removal=settings.removal, addition=settings.addition, record_iou=settings.record_iou
    )


end_of_epoch = resume = common.no_event
product = common.trained_network
SEARCH = searches.NATURAL
