"""What a user is told while a network trains, each thing once: the first steps were too long, sigma is at a bound or has no
gradient, q has become the prior, a NaN.

`ELBO` and `IVON` count their calls here, so a loop of the user's own is told too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ssvi.inference import distributed
from ssvi.math import gaussian
from ssvi.nn.layers import layers, spread_posteriors
from ssvi.nn.sharded import whole
from ssvi.nn.spread import SparseSpread
from ssvi.nn.warning_level import level_of_user

EVERY = 100
"""Calls between two looks. A look waits for the device. The first looks come earlier: at call 1, 2, 4, ..., 64."""

NEAR = 0.1
"""A sigma is near the prior's if it differs by less than this share of it."""

LITTLE_KL = 0.1
"""KL in nats per live weight, below which the posterior says hardly more than the prior. On sklearn's digits networks that
have learnt end above 2, and collapsed ones below 0.07."""

GROWN = 20.0
"""The growth of a layer's mu in the first `EVERY` calls that says that its steps are too long. On sklearn's digits layers of
networks that learn grow up to 11-fold in these steps, and those of pretrained networks that forget everything 35-fold."""


class TrainingWarning(UserWarning):
    """Training goes on, but its result will be poor; the message says what to do."""


class DivergenceWarning(TrainingWarning):
    """A parameter is NaN or infinite, and will stay so."""


@dataclass(frozen=True)
class Remedies:
    """What to do about steps that are too long, a sigma at its bound, a collapse, and a sigma that stays. It depends on who
    trains sigma."""

    steps: str
    bound: str
    collapse: str
    fixed: str | None = None
    """None: rho needs no gradient."""


BY_GRADIENTS = Remedies(
    steps="Begin again with a lower learning rate, or with a warm-up.",
    bound="Lower the learning rate of rho (a parameter group of its own), or train by ssvi.IVON, which sets sigma itself.",
    collapse=(
        "Choose a prior_sigma that fits the size of trained weights; use more data for each weight (more examples, or a "
        "lower density); train by ssvi.IVON; or lower beta, which makes it a cold posterior and not the exact bound."
    ),
    fixed="Where ssvi.IVON trained the network before, it has frozen rho: call bnn.requires_grad_(True).",
)
BY_IVON = Remedies(
    steps="Begin again with a longer warmup or a lower lr.",
    bound="Lower lr.",
    collapse=(
        "Give IVON an h0 (1, for example); choose a prior_sigma that fits the size of trained weights; use more data for "
        "each weight (more examples, or a lower density); or lower temperature, which makes it "
        "a cold posterior and not the exact bound."
    ),
)


class TrainingWatch:
    """Looks at a network that trains, and warns: once of each kind, in the first process only.

    Args:
        bnn: the network. One without Gaussian posteriors (gates alone) is watched for divergence only.
        remedies: what the warnings advise.
        has_gaussian_prior: whether the loss has the KL to N(0, prior_sigma^2). Else there is no collapse to it.
    """

    def __init__(self, bnn: nn.Module, remedies: Remedies, *, has_gaussian_prior: bool = True) -> None:
        self._bnn, self._remedies = bnn, remedies
        self._posteriors = spread_posteriors(bnn) if any(layers(bnn)) else {}
        self._extremes = _extremes(self._posteriors)
        self._sizes = _sizes(self._posteriors)
        self._may_collapse = has_gaussian_prior and bool(self._posteriors) and _collapsed(self._posteriors) is None
        self._calls, self._trains = 0, True
        self._told: set[str] = set()

    def step(self) -> None:
        """Count a call. The extremes of rho are noted at every call, without waiting for the device; a look compares them
        with the bounds."""
        self._trains = torch.is_grad_enabled()
        with torch.no_grad():
            self._count()

    def _count(self) -> None:
        self._calls += 1
        least, most = _extremes(self._posteriors)
        if least:  # a network of gates alone has none
            torch._foreach_minimum_(least, _on_devices_of(least, self._extremes[0]))
            torch._foreach_maximum_(most, _on_devices_of(most, self._extremes[1]))
        self._extremes = least, most
        regular = self._calls % EVERY == 0
        if regular or (self._calls < EVERY and self._calls.bit_count() == 1):
            self._look(for_collapse=regular and self._may_collapse)

    def _look(self, for_collapse: bool) -> None:
        """Tell what is wrong now and was not told before."""
        broken = not_finite(self._bnn)
        if broken is not None:
            self._tell("divergence", f"training has diverged: {broken}", DivergenceWarning)
            return  # nothing else that could be said of NaN would help
        for (name, posterior), least, most in zip(self._posteriors.items(), *self._extremes, strict=True):
            if (bound := _bound(name, posterior, least, most)) is not None:
                self._tell("bound", f"{bound} {self._remedies.bound}")
        if self._trains and self._remedies.fixed is not None and (fixed := self._fixed()) is not None:
            self._tell("fixed", f"{fixed} {self._remedies.fixed}")
        if self._calls <= EVERY and (grown := self._grown()) is not None:
            self._tell("steps", f"{grown} {self._remedies.steps}")
        collapse = _collapsed(self._posteriors) if for_collapse else None
        if collapse is not None:
            self._tell("collapse", f"{collapse} {self._remedies.collapse}")

    def _fixed(self) -> str | None:
        """The first layer whose mu trains and whose sigma does not."""
        for name, posterior in self._posteriors.items():
            if posterior.mu.requires_grad and not posterior.rho.requires_grad:
                return f"layer {name!r}: sigma stays as it is, because rho has requires_grad=False."
        return None

    def _grown(self) -> str | None:
        """The layer whose mu has grown most, if that is too much; a layer that starts at 0 has no size to compare with."""
        pairs = zip(self._posteriors, _sizes(self._posteriors), self._sizes, strict=True)
        growth = {name: now.item() / start.item() for name, now, start in pairs if start > 0}
        name = max(growth, key=growth.__getitem__, default="")
        if not name or growth[name] < GROWN:
            return None
        return (
            f"layer {name!r}: mu has become {growth[name]:.0f} times as large in the first {self._calls} steps. They are "
            "too long: what the network knew is lost, and it will learn badly."
        )

    def _tell(self, kind: str, message: str, category: type[Warning] = TrainingWarning) -> None:
        if kind not in self._told and distributed.rank() == 0:
            warnings.warn(message, category, stacklevel=level_of_user())
        self._told.add(kind)


def not_finite(net: nn.Module) -> str | None:
    """The layer of the first parameter that has a NaN or an infinity, and what to do; None if there is none."""
    for name, parameter in net.named_parameters():
        if not whole(parameter.detach()).isfinite().all():
            layer, _, what = f".{name}".replace(".posterior.", ".").rpartition(".")
            return (
                f"{what} of layer {layer[1:]!r} is not finite since an earlier step. Begin again from the last state that "
                "you saved, with a lower learning rate, or clip gradients."
            )
    return None


def _sizes(posteriors: Mapping[str, SparseSpread]) -> list[Tensor]:
    """The norm of mu of each."""
    return [whole(posterior.mu.detach()).norm() for posterior in posteriors.values()]


def _extremes(posteriors: Mapping[str, SparseSpread]) -> tuple[list[Tensor], list[Tensor]]:
    """The least and the largest rho of each, by one operator: this is asked in every step of training."""
    pairs = [torch.aminmax(whole(posterior.rho.detach())) for posterior in posteriors.values()]
    return [least for least, _ in pairs], [most for _, most in pairs]


def _on_devices_of(now: Sequence[Tensor], before: Sequence[Tensor]) -> list[Tensor]:
    """What was noted before, where the network is now."""
    return [value.to(other.device) for value, other in zip(before, now, strict=True)]


def _bound(name: str, posterior: SparseSpread, least: Tensor, most: Tensor) -> str | None:
    """Which sigma is held where, if these are the extremes of rho."""
    low, high = posterior.rho_range
    side = int(most >= high)
    if not (side or least <= low):
        return None
    value = posterior.sigma_of(posterior.rho_range[side]).item()
    return (
        f"layer {name!r}: sigma has reached its {('lower', 'upper')[side]} bound {value:.2g} and is held there "
        f"(prior_sigma={posterior.prior_sigma:g}). The steps of training are too large."
    )


@torch.no_grad()
def _collapsed(posteriors: dict[str, SparseSpread]) -> str | None:
    """Whether q is hardly more than the prior: a small KL per weight, and most sigmas near that of the prior.

    Both are needed. In a good network many weights may be superfluous and follow the prior, but then the others have a KL.
    It is counted above the least that the family can have, which for all families is the KL of a Gaussian with this sigma.
    """
    weights = sum(p.s for p in posteriors.values())
    sigmas = {name: whole(p.sigma) for name, p in posteriors.items()}
    near = sum(int(((sigmas[name] / p.prior_sigma - 1).abs() < NEAR).sum()) for name, p in posteriors.items())
    kl = sum(gaussian.kl(whole(p.mu), sigmas[name], p.prior_sigma).sum().item() for name, p in posteriors.items())
    if near <= weights / 2 or kl >= LITTLE_KL * weights:
        return None
    return (
        f"the posterior has collapsed to the prior: {near / weights:.0%} of the live weights have a sigma within {NEAR:.0%} "
        f"of prior_sigma, and the KL is {kl / weights:.2g} nats per weight. Such a network has learnt almost nothing."
    )
