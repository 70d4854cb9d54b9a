"""Deng, Zhang, Liang, Lin: "An Adaptive Empirical Bayesian Method for Sparse Deep Learning", NeurIPS 2019 (AEB).

SGHMC samples the weights under a spike-and-slab prior whose indicators are averaged by stochastic approximation, and
magnitude pruning takes every sparse layer to a density set in advance. The prior shapes the weights; the schedule of
the pruning alone decides how many are zero. It is dense in memory: rho, k0, k1, the mask and the velocity have d
entries per layer.

Our decisions, where the authors' code differs from their model or the paper says nothing: the densities contain sigma;
sigma^2 is one number per layer, like delta; adaptation comes before pruning; pruning is exact and not within a
tolerance; and there is one run, which starts from the network as it is (the authors train a dense one first).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.allocation import same_density
from ssvi.inference.layer_prior import Prior, prune_
from ssvi.inference.loss import Energy
from ssvi.nn.conversion_rules import convertible
from ssvi.schedules import Schedule


class SpikeAndSlab(Energy):
    """Energy, adaptation and pruning for one network: `loss = prior(nll)`, and `prior.step(x, y)` after the optimiser's.

        U = N nll + sum_sparse [w^2 k1 / (2 sigma^2) + |w| k0 / sigma] + sum_other N weight_decay w^2 / 2,    loss = U / N

    tau = 50 t / gap counts the paper's iterations. Step t adapts by (50 / gap) C / (A + tau)^p and prunes to the share
    1 - 0.99^(tau / 50) of the way. gap = 50 is exactly the paper; by default its 50 000 iterations are mapped to `steps`,
    so that a short run adapts and prunes as far as a long one.

    Args:
        net: a plain network.
        train_size: N, the number of examples in the training set.
        density: live weights / all weights of the sparse layers at the end, and in each of them up to rounding.
        steps: the number of optimiser steps of the run.
        v0: scale of the Laplace spike. The pull on a weight is at most 1 / (v0 N) per example, whatever its size.
        v1: variance of the Gaussian slab. At most 1 / (v1 N) is the weight decay of a weight with rho = 1; lr times that
            must stay below 2 (1 + momentum). What counts is v0 N and v1 N: the authors' (0.005, 1e-5), made for N =
            50 000, turn a network for 1000 digits into zeros. There the weak v0 = 1, v1 = 0.1 had the best validation NLL.
        dense: names of Linear or Conv layers that are not pruned; like biases they have plain weight decay.
        a: of the prior of delta; by default the number of sparse weights, as in the authors' code.
        b: the same for b.
        nu: of the prior of sigma^2; the authors' value.
        lam: of the prior of sigma^2; the authors' value. 1 would centre it where sigma^2 starts.
        C: of the step size of the adaptation. C = 1, p = 0, gap = 50 is EM.
        A: of the step size.
        p: of the step size.
        gap: steps that count as 50 iterations of the paper; by default steps / 1000.
        hold: share of the steps, the last ones, in which the density is exactly the final one.
        weight_decay: of everything that is not sparse.
        adapt: the quantities that adapt: "rho" (with k0 and k1), "delta", "sigma". The authors advise to keep the last
            two constant. With none of them it is plain SGHMC.
    """

    def __init__(
        self,
        net: nn.Module,
        *,
        train_size: int,
        density: float,
        steps: int,
        v0: float,
        v1: float,
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
        super().__init__(train_size)
        sparse, others = _split_parameters(net, dense)
        total = sum(weight.numel() for weight in sparse.values())
        a, b, gap = (total if a is None else a), (total if b is None else b), (steps / 1000 if gap is None else gap)
        _check(density=density, steps=steps, v0=v0, v1=v1, a=a, b=b, nu=nu, lam=lam, gap=gap, hold=hold, adapt=adapt)
        self.priors = {name: Prior(weight, v0, v1, a, b, nu, lam) for name, weight in sparse.items()}
        self.others, self.weight_decay, self.adapted = others, weight_decay, adapt
        self.final_counts = dict(
            zip(sparse, same_density([tuple(w.shape) for w in sparse.values()], density), strict=True)
        )
        self.gain: Schedule = lambda t: min(1.0, 50 / gap * C / (A + 50 * t / gap) ** p)
        self.pruned_share = pruned_share(gap, until=max(1, steps - round(hold * steps)))
        self.t = 0

    def penalty(self) -> Tensor:
        """U - N nll: the energies of the sparse layers' priors, and the weight decay of everything else."""
        sparse = torch.stack([prior.energy() for prior in self.priors.values()]).sum()
        squares = [parameter.square().sum() for parameter in self.others]
        return sparse + 0.5 * self.weight_decay * self.train_size * torch.stack(squares).sum() if squares else sparse

    def step(self, x: Tensor, y: Tensor) -> int:
        """Adapt the prior to the weights, then prune them. Returns how many weights became zero or came back from zero.

        The batch is not used; it is there because other methods need one.
        """
        self.t += 1
        changed = 0
        for name, prior in self.priors.items():
            prior.adapt(self.gain(self.t), self.adapted)
            d, final = prior.weight.numel(), self.final_counts[name]
            mask = prune_(prior.weight, d - round(self.pruned_share(self.t) * (d - final)), name)
            changed += int((mask != prior.mask).sum())
            prior.mask = mask
        return changed

    @property
    def reached(self) -> bool:
        """Whether the layers are at their final density. Samples taken before that are of another model."""
        return self.pruned_share(self.t) == 1.0

    @property
    def live(self) -> dict[str, int]:
        """The live weights of each sparse layer since the last pruning, by its name."""
        return {name: int(prior.mask.sum()) for name, prior in self.priors.items()}

    @property
    def live_share(self) -> float:
        """Live weights / all weights of the sparse layers."""
        return sum(self.live.values()) / sum(prior.mask.numel() for prior in self.priors.values())

    def state_dict(self) -> dict[str, Any]:
        """The number of steps, and what each layer's prior has learnt."""
        return {"t": self.t, "priors": {name: prior.state_dict() for name, prior in self.priors.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state: with the weights of that moment the next step is the same to the bit."""
        if state["priors"].keys() != self.priors.keys():
            raise ValueError(f"state has the layers {[*state['priors']]}, this network {[*self.priors]}: load it there")
        self.t = state["t"]
        for name, prior in self.priors.items():
            prior.load_state_dict(state["priors"][name])


def inv_temperature(start: float = 1000.0, growth: float = 1.005, *, every: float) -> Schedule:
    """The annealing of SGHMC's inverse temperature: start growth^floor(step / every).

    In the paper `every` is one epoch of 50 steps, and there are 1000 epochs. So every = steps / 1000 is the same share of
    a run.
    """
    if not (start > 0 and growth > 0 and every > 0):
        raise ValueError(f"start={start!r}, growth={growth!r} and every={every!r} must be positive")
    return lambda step: start * growth ** (step // every)


def pruned_share(gap: float, *, until: int) -> Schedule:
    """The share of the way to the final sparsity: 1 - 0.99^(t / gap) at step t, and 1 from step `until` on."""
    return lambda t: 1.0 if t >= until else 1.0 - 0.99 ** (t / gap)


def _split_parameters(net: nn.Module, dense: Collection[str]) -> tuple[dict[str, nn.Parameter], list[nn.Parameter]]:
    """The weights to prune, each once under the name of its first layer; and all other parameters."""
    layers = convertible(net)
    if unknown := set(dense) - layers.keys():
        raise ValueError(f"dense={sorted(unknown)} are no Linear or Conv layers of net: it has {', '.join(layers)}")
    spared = {layers[name].weight for name in dense}
    first_names: dict[Any, str] = {}
    for name, layer in layers.items():
        if layer.weight not in spared:
            first_names.setdefault(layer.weight, name)
    if not first_names:
        raise ValueError(f"dense={tuple(dense)!r} leaves no layer to prune in net: name fewer, or train it without AEB")
    others = [parameter for parameter in net.parameters() if parameter not in first_names]
    return {name: weight for weight, name in first_names.items()}, others


_RULES: list[tuple[tuple[str, ...], Callable[[Any], bool], str]] = [
    (("steps", "v0", "v1", "nu", "lam", "gap"), lambda v: v > 0, "positive"),
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
