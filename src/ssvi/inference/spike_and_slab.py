"""Deng, Zhang, Liang, Lin: "An Adaptive Empirical Bayesian Method for Sparse Deep Learning", NeurIPS 2019 (AEB).

SGHMC samples the weights under a spike-and-slab prior whose indicators are averaged by stochastic approximation, and
magnitude pruning takes every sparse layer to a density set in advance. The prior shapes the weights; how many are zero
is the schedule's decision. Dense in memory: rho, k0, k1, the support and the velocity have d entries per layer.

Our decisions where the authors' code departs from the model or nothing is said: the densities contain sigma; sigma^2 is
one number per layer, like delta; adaptation comes before pruning; pruning is exact and not within a tolerance; and there
is one run, from the network as it is (the authors train a dense one first).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.allocation import uniform
from ssvi.inference.addition import top_k
from ssvi.inference.elbo import Terms
from ssvi.nn.layers import TWINS
from ssvi.schedules import Schedule


@dataclass
class Prior:
    """The prior of the weights w of one layer, and the running averages that stand for its indicators gamma.

        w_j | gamma_j = 1 ~ N(0, sigma^2 v1)      w_j | gamma_j = 0 ~ Laplace(0, sigma v0)      gamma_j ~ Bernoulli(delta)
        delta ~ Beta(a, b)                        sigma^2 ~ InvGamma(nu / 2, nu lam / 2)

    rho_j stands for P(gamma_j = 1 | w_j), k1_j for rho_j / v1 and k0_j for (1 - rho_j) / v0.
    """

    weight: nn.Parameter
    v0: float
    v1: float
    a: float
    b: float
    nu: float
    lam: float
    delta: float = 0.5
    sigma2: float = 1.0
    rho: Tensor = field(init=False)
    k0: Tensor = field(init=False)
    k1: Tensor = field(init=False)
    live: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.rho = torch.full_like(self.weight, 0.5)
        self.k0, self.k1 = torch.full_like(self.weight, 5e-4), torch.full_like(self.weight, 5e-4)
        self.live = self.weight.detach() != 0

    def energy(self) -> Tensor:
        """sum_j w_j^2 k1_j / (2 sigma^2) + |w_j| k0_j / sigma: minus the expected log prior, up to a constant."""
        w, sigma = self.weight, math.sqrt(self.sigma2)
        return (w.square() * self.k1).sum() / (2 * self.sigma2) + (w.abs() * self.k0).sum() / sigma

    @torch.no_grad()
    def adapt(self, step: float, what: Collection[str]) -> None:
        """One step of stochastic approximation: each quantity goes the share `step` of the way to its EM update."""
        if "rho" in what:
            self.rho.lerp_(self.responsibility(), step)
            self.k0.lerp_((1 - self.rho) / self.v0, step)
            self.k1.lerp_(self.rho / self.v1, step)
        if "delta" in what:
            self.delta += step * (self.best_delta() - self.delta)
        if "sigma" in what:
            self.sigma2 += step * (self.best_sigma() ** 2 - self.sigma2)

    @torch.no_grad()
    def responsibility(self) -> Tensor:
        """P(gamma = 1 | w): the sigmoid of log(delta / (1 - delta)) + log N(w; 0, sigma^2 v1) - log Laplace(w; 0, sigma v0).

        sigma cancels between the normalising constants, sqrt(2 pi v1) sigma and 2 v0 sigma.
        """
        size = self.weight.abs() / math.sqrt(self.sigma2)
        odds = math.log(self.delta / (1 - self.delta)) + math.log(2 * self.v0) - 0.5 * math.log(2 * math.pi * self.v1)
        return torch.sigmoid(odds - size.square() / (2 * self.v1) + size / self.v0)

    def best_delta(self) -> float:
        """The mode of delta given rho: (sum rho + a - 1) / (a + b + d - 2)."""
        return (self.rho.sum().item() + self.a - 1) / (self.a + self.b + self.rho.numel() - 2)

    def best_sigma(self) -> float:
        """The root of R_a s^2 - R_b s - R_c = 0, the mode of sigma given k0 and k1.

        R_a = d + nu + 2, R_b = sum |w| k0, R_c = sum w^2 k1 + nu lam.
        """
        r_a = self.rho.numel() + self.nu + 2
        r_b = (self.weight.abs() * self.k0).sum().item()
        r_c = (self.weight.square() * self.k1).sum().item() + self.nu * self.lam
        return (r_b + math.sqrt(r_b**2 + 4 * r_a * r_c)) / (2 * r_a)


class SpikeAndSlab:
    """Energy, adaptation and pruning for one network: `loss = prior(nll)`, and `prior.step(x, y)` after the optimiser's.

        U = N nll + sum_sparse [w^2 k1 / (2 sigma^2) + |w| k0 / sigma] + sum_other N weight_decay w^2 / 2,    loss = U / N

    The clock tau = 50 t / gap counts the paper's iterations. Step t adapts by (50 / gap) C / (A + tau)^p and prunes to
    the share 1 - 0.99^(tau / 50) of the way. gap = 50 is the paper to the letter; by default its 50 000 iterations are
    stretched to `steps`, so that a short run adapts and prunes as far as a long one.

    Args:
        net: a plain network.
        train_size: N, the number of examples in the training set.
        density: live weights / all weights of the sparse layers at the end, and in each of them up to rounding.
        steps: the number of optimiser steps of the run.
        v0: scale of the Laplace spike. The pull on a weight is at most 1 / (v0 N) per example, whatever its size.
        v1: variance of the Gaussian slab. At most 1 / (v1 N) is the weight decay of a weight with rho = 1; lr times that
            must stay below 2 (1 + momentum). What counts is v0 N and v1 N: the authors' (0.005, 1e-5), made for N =
            50 000, turn a network for 1000 digits into zeros, where our weak defaults had the best validation NLL.
        dense: names of Linear or Conv layers that are not pruned; like biases they have plain weight decay.
        a, b: of the prior of delta; by default the number of sparse weights, as the authors'.
        nu, lam: of the prior of sigma^2; the authors'. lam = 1 would centre it where sigma^2 starts.
        C, A, p: of the step size of the adaptation. C = 1, p = 0, gap = 50 is EM.
        gap: steps that count as 50 iterations of the paper; by default steps / 1000.
        hold: share of the steps, the last ones, in which the density is exactly the final one.
        weight_decay: of everything that is not sparse.
        adapt: what adapts: "rho" (with k0 and k1), "delta", "sigma". The authors advise to keep the last two fixed;
            nothing is plain SGHMC.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        train_size: int,
        density: float,
        steps: int,
        v0: float = 1.0,
        v1: float = 0.1,
        dense: Collection[str] = (),
        a: float | None = None,
        b: float | None = None,
        nu: float = 1000.0,
        lam: float = 1000.0,
        C: float = 0.02,
        A: float = 1000.0,
        p: float = 0.75,
        gap: float | None = None,
        hold: float = 0.25,
        weight_decay: float = 5e-4,
        adapt: Collection[str] = ("rho",),
    ) -> None:
        sparse = _sparse_weights(net, dense)
        total = sum(weight.numel() for weight in sparse.values())
        a, b, gap = (total if a is None else a), (total if b is None else b), (steps / 1000 if gap is None else gap)
        _check(train_size=train_size, density=density, steps=steps, v0=v0, v1=v1, a=a, b=b, nu=nu, lam=lam, gap=gap,
               hold=hold, adapt=adapt)  # fmt: skip
        self.priors = {name: Prior(weight, v0, v1, a, b, nu, lam) for name, weight in sparse.items()}
        taken = {id(weight) for weight in sparse.values()}
        self.others = [parameter for parameter in net.parameters() if id(parameter) not in taken]
        self.final = dict(zip(sparse, uniform([tuple(w.shape) for w in sparse.values()], density), strict=True))
        self.train_size, self.weight_decay, self.what = train_size, weight_decay, adapt
        self.gain: Schedule = lambda t: min(1.0, 50 / gap * C / (A + 50 * t / gap) ** p)
        self.share = pruning(gap, until=max(1, steps - round(hold * steps)))
        self.t = 0
        self._last: tuple[Tensor, Tensor] | None = None

    def penalty(self) -> Tensor:
        """U - N nll; differentiable."""
        sparse = torch.stack([prior.energy() for prior in self.priors.values()]).sum()
        squares = [parameter.square().sum() for parameter in self.others]
        return sparse + 0.5 * self.weight_decay * self.train_size * torch.stack(squares).sum() if squares else sparse

    def __call__(self, nll: Tensor) -> Tensor:
        """U / N for a batch whose mean negative log-likelihood is `nll`."""
        if nll.dim() != 0:
            raise ValueError(f"nll has shape {tuple(nll.shape)}: pass the mean over the batch, e.g. reduction='mean'")
        penalty = self.penalty()
        self._last = nll.detach(), penalty.detach()
        return nll + penalty / self.train_size

    @property
    def terms(self) -> Terms:
        """NLL and penalty of the last call, apart."""
        if self._last is None:
            raise RuntimeError("prior.terms: there was no call yet")
        return Terms(self._last[0].item(), self._last[1].item(), 1.0)

    def step(self, x: Tensor, y: Tensor) -> int:
        """Adapt the prior to the weights, then prune them; how many became zero or ceased to be. Needs no batch."""
        self.t += 1
        changed = 0
        for name, prior in self.priors.items():
            prior.adapt(self.gain(self.t), self.what)
            d, final = prior.weight.numel(), self.final[name]
            live = prune_(prior.weight, d - round(self.share(self.t) * (d - final)), name)
            changed += int((live != prior.live).sum())
            prior.live = live
        return changed

    @property
    def reached(self) -> bool:
        """Whether the layers are at their final density; samples taken before are of another model."""
        return self.share(self.t) == 1.0

    @property
    def live(self) -> float:
        """Live weights / all weights of the sparse layers."""
        masks = [prior.live for prior in self.priors.values()]
        return sum(int(mask.sum()) for mask in masks) / sum(mask.numel() for mask in masks)

    def state_dict(self) -> dict[str, Any]:
        """The clock, and what each layer's prior has learnt."""
        return {"t": self.t, "priors": {n: {key: getattr(q, key) for key in _STATE} for n, q in self.priors.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there: with the weights of that moment the next step is the same to the bit."""
        if state["priors"].keys() != self.priors.keys():
            raise ValueError(f"state has the layers {[*state['priors']]}, this network {[*self.priors]}: load it there")
        self.t = state["t"]
        for name, values in state["priors"].items():
            for key in _STATE:
                value = values[key]
                setattr(self.priors[name], key, value.clone() if isinstance(value, Tensor) else value)


_STATE = ("rho", "k0", "k1", "live", "delta", "sigma2")


def inv_temperature(start: float = 1000.0, growth: float = 1.005, *, every: float) -> Schedule:
    """The annealing of SGHMC's inverse temperature: start growth^floor(step / every). The paper's `every` is an epoch of
    50 steps, one of 1000, so steps / 1000 is the same share of a run."""
    if not (start > 0 and growth > 0 and every > 0):
        raise ValueError(f"start={start!r}, growth={growth!r} and every={every!r} must be positive")
    return lambda step: start * growth ** (step // every)


def pruning(gap: float, *, until: int) -> Schedule:
    """The share of the way to the final sparsity: 1 - 0.99^(t / gap), and 1 from step `until` on."""
    return lambda t: 1.0 if t >= until else 1.0 - 0.99 ** (t / gap)


@torch.no_grad()
def prune_(weight: Tensor, k: int, name: str) -> Tensor:
    """Set all but the k largest |w| to zero, the lower position winning ties; returns where the weight is not zero.

    It is no mask: the velocity stays as it is, so a zero moves with the next step of the sampler and comes back if it
    grows past the smallest that lives.
    """
    size = weight.abs().flatten()
    if not torch.isfinite(size).all():
        raise FloatingPointError(f"layer {name!r} has weights that are not finite: lower lr, or raise v0 and v1")
    keep = torch.zeros_like(size, dtype=torch.bool).index_fill_(0, top_k(size, k), True).view_as(weight)
    weight.masked_fill_(~keep, 0.0)
    return weight.detach() != 0


def _sparse_weights(net: nn.Module, dense: Collection[str]) -> dict[str, nn.Parameter]:
    """The weights of all Linear and Conv layers but the dense ones, each once, under the name of its first layer."""
    layers = {name: module for name, module in net.named_modules() if type(module) in TWINS}
    if unknown := set(dense) - layers.keys():
        raise ValueError(f"dense={sorted(unknown)} are no Linear or Conv layers of net: it has {', '.join(layers)}")
    spared = {layers[name].weight for name in dense}
    found: dict[Any, str] = {}
    for name, layer in layers.items():
        if layer.weight not in spared:
            found.setdefault(layer.weight, name)
    if not found:
        raise ValueError(f"dense={tuple(dense)!r} leaves no layer to prune in net: name fewer, or train it without AEB")
    return {name: weight for weight, name in found.items()}


_RULES: list[tuple[tuple[str, ...], Callable[[Any], bool], str]] = [
    (("train_size", "steps", "v0", "v1", "nu", "lam", "gap"), lambda v: v > 0, "positive"),
    (("density",), lambda v: 0 < v <= 1, "in (0, 1]: 0.05 keeps 5 % of the weights"),
    (("hold",), lambda v: 0 <= v <= 1, "in [0, 1]: a share of the steps"),
    (("a", "b"), lambda v: v > 1, "above 1, so that delta stays inside (0, 1)"),
    (("adapt",), lambda v: set(v) <= {"rho", "delta", "sigma"}, "some of 'rho', 'delta', 'sigma'"),
]


def _check(**values: Any) -> None:
    for names, holds, must in _RULES:
        for name in names:
            if not holds(values[name]):
                raise ValueError(f"{name}={values[name]!r} must be {must}")
