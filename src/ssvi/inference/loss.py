"""The losses of Bayesian training: the bound of variational inference, and the energy that a sampler samples from.

Both are per training example. The size of the training set is a required argument, so their scale is right.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.inference.argument_checks import check_number_or_schedule, check_real, check_whole
from ssvi.inference.optimizer_steps import LossSteps
from ssvi.inference.watch import BY_GRADIENTS, TrainingWatch, not_finite
from ssvi.nn.layers import kl as gaussian_kl
from ssvi.nn.sharded import whole
from ssvi.nn.spread import SparseSpread
from ssvi.schedules import Schedule, resolve


@dataclass(frozen=True)
class Terms:
    """The terms of the last loss: mean NLL of the batch, divergence of the network, and the factor of the divergence."""

    nll: float
    kl: float
    beta: float


def check_train_size(train_size: int) -> None:
    """Refuse what is not a number of training examples."""
    what = "the number of examples in the training set, e.g. len(train_set)"
    if isinstance(train_size, bool) or not 0 < check_real("train_size", train_size, what) < math.inf:
        raise ValueError(f"train_size={train_size!r} must be a positive number: {what}")


def _check_beta(beta: float | Schedule) -> None:
    what = "the factor of the KL"
    check_number_or_schedule("beta", beta, what)
    if not callable(beta) and beta < 0:
        raise ValueError(f"beta={beta!r} must be 0 or more: {what}")


def check_is_mean(nll: Tensor) -> None:
    """Refuse a loss per example: the scale of the bound holds for the mean over the batch."""
    if nll.dim() != 0:
        raise ValueError(f"nll has shape {tuple(nll.shape)}: pass the mean over the batch, e.g. reduction='mean'")


def refuse_natural_gradients(bnn: nn.Module) -> None:
    """Inside `IVON.sampled` the bound is an error: the optimiser adds the gradient of the KL itself."""
    if any(isinstance(module, SparseSpread) and _is_sampled_by_ivon(module) for module in bnn.modules()):
        raise ValueError(
            "ELBO inside sampled(): the steps of IVON contain the KL, which would count twice for mu. Call backward() of "
            "the mean NLL itself, or train by ELBO and an optimiser of torch"
        )


def _is_sampled_by_ivon(posterior: SparseSpread) -> bool:
    """Whether theta is pinned with a gradient to mu, and sigma, which IVON sets, has none."""
    theta = posterior.pinned
    return theta is not None and theta.requires_grad and not posterior.rho.requires_grad


class ELBO:
    """The negative evidence lower bound per example: mean NLL of a batch + beta_t KL(q || p) / train_size   (Eq. 3).

    `train_size` is N, the number of training examples: the data term of the bound is a sum over all of them, the batch
    gives its mean, so the KL must be divided by N (not by the batch size, not by the number of batches).
    beta is 1 for the exact bound; a schedule over the gradient steps is KL warm-up, a value below 1 a cold posterior.
    Steps are those of the optimiser, so micro-batches and repeated closures share one.
    A loss that is not finite is an error, and so is a call inside `IVON.sampled`. A `TrainingWarning` says,
    once, that sigma is at a bound or q is the prior again.

    Args:
        bnn: a network from `to_bnn`.
        train_size: the number of examples in the training set.
        beta: a number or a schedule step -> float.
        kl: the divergence of the network, where it is not that of Gaussian priors.
        micro_batches: calls with gradients enabled per step, for a loop that knows. With None the steps of the optimisers
            that hold a parameter of `bnn` are counted; before the first of them, and without any, every call is a step.
    """

    def __init__(
        self,
        bnn: nn.Module,
        *,
        train_size: int,
        beta: float | Schedule = 1.0,
        kl: Callable[[nn.Module], Tensor] = gaussian_kl,
        micro_batches: int | None = None,
    ) -> None:
        _check_beta(beta)
        if micro_batches is not None:
            check_whole("micro_batches", micro_batches, "calls per optimiser step; or None", least=1)
        kl(bnn)  # a network without a Bayesian layer is an error here and not in the first step
        check_train_size(train_size)
        self.bnn = bnn
        self.train_size = train_size
        self.beta = resolve(beta)
        self.kl = kl
        self._steps = LossSteps(bnn, micro_batches)
        self._watch = TrainingWatch(bnn, BY_GRADIENTS, has_gaussian_prior=kl is gaussian_kl)
        self._last: tuple[Tensor, Tensor, float] | None = None

    def __call__(self, nll: Tensor) -> Tensor:
        """The loss for a batch whose mean negative log-likelihood is `nll`."""
        check_is_mean(nll)
        if torch.is_grad_enabled():
            refuse_natural_gradients(self.bnn)
        divergence, beta = whole(self.kl(self.bnn)), self.beta(self.step)
        loss = nll + beta / self.train_size * divergence
        if not torch.isfinite(loss):
            raise FloatingPointError(self._why(nll, divergence))
        self._last = nll.detach(), divergence.detach(), beta
        if torch.is_grad_enabled():
            self._steps.count_call()
            self._watch.step()
        return loss

    @property
    def step(self) -> int:
        """The number of steps before the coming call, at which the schedule of beta is."""
        return self._steps.number

    def _why(self, nll: Tensor, divergence: Tensor) -> str:
        """The reason for a loss that is not finite: a layer, or else the batch."""
        reason = not_finite(self.bnn) or (
            "all parameters are finite. Look for NaN and for very large numbers in the input, or lower the learning rate or "
            "sigma_init."
        )
        return f"nll={nll.item()} at step {self.step}, kl={divergence.item():.3g}: {reason}"

    @property
    def terms(self) -> Terms:
        """NLL, KL and beta of the last call."""
        if self._last is None:
            raise RuntimeError("elbo.terms: there was no call yet; compute a loss first")
        nll, divergence, beta = self._last
        return Terms(nll.item(), divergence.item(), beta)

    def state_dict(self) -> dict[str, int]:
        """The step that the schedule of beta has reached."""
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from a saved state."""
        self._steps.start_from(state["step"])


class Energy(ABC):
    """The loss of a sampler: U / N = nll + penalty / N.

    U = N nll + penalty is the energy of the posterior, and penalty = -log prior, up to a constant.

    `train_size` is N, the number of training examples; `nll` is the mean negative log-likelihood of a batch.
    """

    def __init__(self, train_size: int) -> None:
        check_train_size(train_size)
        self.train_size = train_size
        self._last: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def penalty(self) -> Tensor:
        """U - N nll, a number with gradients to the weights."""

    def __call__(self, nll: Tensor) -> Tensor:
        """U / N for a batch whose mean negative log-likelihood is `nll`."""
        check_is_mean(nll)
        penalty = self.penalty()
        self._last = nll.detach(), penalty.detach()
        return nll + penalty / self.train_size

    @property
    def terms(self) -> Terms:
        """NLL and penalty of the last call; the penalty stands in the place of the KL, and beta is 1."""
        if self._last is None:
            raise RuntimeError(f"{type(self).__name__}.terms: there was no call yet; compute a loss first")
        nll, penalty = self._last
        return Terms(nll.item(), penalty.item(), 1.0)
