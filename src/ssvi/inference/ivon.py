"""IVON: natural-gradient variational inference on the live weights (Shen et al., "Variational Learning is Effective for
Large Deep Networks", ICML 2024), at the price of one theta per batch.

With the mean negative log-likelihood l of a batch, N training examples and the prior N(0, prior_sigma^2):

    delta = 1 / (N prior_sigma^2)            lambda = N / temperature
    sigma = 1 / sqrt(lambda (h + delta))     theta = mu + sigma eps, one for the whole batch
    g_hat = dl/dtheta                        h_hat = g_hat eps / sigma, an estimate of the diagonal of the Hessian
    g <- b1 g + (1 - b1) g_hat
    h <- b2 h + (1 - b2) h_hat + (1 - b2)^2 (h - h_hat)^2 / (2 (h + delta))
    mu <- mu - lr (g / (1 - b1^t) + delta mu) / (h + delta)

The last term of h keeps h + delta positive for every h_hat, and it is never below delta / 100. With temperature 1 the steps
descend the bound itself, KL and prior included, so there is no beta to choose. Two things are ours: where h starts from a
small sigma, and so far above the curvature, a step divides by the h that would have come from a start at `H_STEP`; and lr
rises over the first steps, because g is debiased, so that the very first step would have its whole length before anything is
known of the curvature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ssvi import kernels
from ssvi.inference import eager_methods
from ssvi.inference.argument_checks import check_number_or_schedule, check_whole
from ssvi.inference.ivon_checks import check_numbers, refuse_not_finite, refuse_scaler, refuse_sharded, trainable
from ssvi.inference.ivon_draws import Draws
from ssvi.inference.ivon_settings import load_state, parameter_groups, plain_step, positive_at, start_of_h
from ssvi.inference.loss import check_train_size
from ssvi.inference.watch import BY_IVON, TrainingWatch
from ssvi.kernels.ivon import Evidence, Layer, Rates
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sigma_maps import GAIN
from ssvi.nn.sparse import SparsePosterior
from ssvi.schedules import Schedule, resolve


class IVON(Optimizer):
    """Trains mu and sigma of the live weights by natural gradients, and all other parameters by SGD beside them.

        optimizer = ssvi.IVON(bnn, train_size=len(train_set))
        with optimizer.sampled():  # theta ~ q, one for the batch
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()  # uses the gradients up: there is no zero_grad to call

    Several `with` blocks before a step are several thetas, whose gradients are averaged; several backward passes in one
    block are parts of one batch, whose gradients are added up, so divide each loss by their number. After a step the
    network holds mu and sigma, so `predict`, `summary`, `kl` and `save` need not know how it was trained. In an update of
    `Subspace` a fresh weight starts with the mean h of its layer.

    Args:
        bnn: a network from `to_bnn`.
        train_size: N, the number of examples in the training set.
        lr: of the natural gradient; torch's schedulers change it. 0.1 to 0.5, with a cosine to 0.
        warmup: the steps in which lr rises to its value, in a straight line; 0: none, for a schedule that has its own.
        h0: the start of h; None: what gives a layer the sigma that it has, but at least `H_START` (then sigma is smaller).
        betas: b1 of the momentum and b2 of the curvature.
        temperature: 1 is the bound; below 1 is a cold posterior, likelihood and prior to the power 1 / temperature. A
            schedule of the step may begin cold: theta ~ q disturbs weights that are still small more than trained ones.
        clip_radius: no weight moves by more than lr times this in a step.
        rest_lr: of the parameters that are not Bayesian: biases, normalisation, deterministic layers.
        rest_momentum: of the same.
        rest_decay: the weight decay of the same, as torch's SGD has it: the prior of parameters that are only a point.
        groups: patterns of layers with an lr, betas or clip_radius of their own: {"head*": {"lr": 0.05}}, for example.
    """

    add_param_group = eager_methods.add_param_group
    state_dict = eager_methods.state_dict
    _step_supports_amp_scaling = True  # so that a GradScaler tells of itself, see `refuse_scaler`

    def __init__(
        self,
        bnn: nn.Module,
        lr: float = 0.3,
        *,
        train_size: int,
        warmup: int = 100,
        h0: float | None = None,
        betas: tuple[float, float] = (0.9, 0.9999),
        temperature: float | Schedule = 1.0,
        clip_radius: float = math.inf,
        rest_lr: float = 0.02,
        rest_momentum: float = 0.9,
        rest_decay: float = 0.0,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        check_train_size(train_size)
        check_number_or_schedule("temperature", temperature, "1 is the bound, less is a cold posterior")
        self.train_size, self._temperature = train_size, resolve(temperature)
        self._warmup = check_whole("warmup", warmup, "the steps in which lr rises; 0 for none", least=0)
        check_numbers(
            positive={"h0": 1.0 if h0 is None else h0, "temperature": self._temperature(0), "clip_radius": clip_radius},
            rates={"lr": lr, "rest_lr": rest_lr, "rest_decay": rest_decay}, shares={"rest_momentum": rest_momentum},
            betas=betas,
        )  # fmt: skip
        self._posteriors = trainable(bnn)
        self._draws = Draws(self._layer)
        natural = {"kind": "mu", "lr": lr, "betas": betas, "clip_radius": clip_radius, "step": 0}
        plain = {"kind": "rest", "lr": rest_lr, "momentum": rest_momentum, "weight_decay": rest_decay}
        super().__init__(parameter_groups(bnn, natural, plain, groups or {}), {"lr": lr})
        for mu, posterior in self._posteriors.items():
            posterior.rho.requires_grad_(False)  # sigma is written after every step, and has no gradient
            h, excess = start_of_h(posterior.sigma2.detach() / self.temperature, train_size, self._delta(posterior), h0)
            self.state[mu] = {"g": torch.zeros_like(h), "h": h, "excess": excess}
            posterior.sigma_init.copy_(self.sigma(posterior).mean())  # what reports call the start of sigma
            self._write_sigma(posterior)
        self._watch = TrainingWatch(bnn, BY_IVON)

    def __getstate__(self) -> dict[str, Any]:
        """All but torch's hooks, which hold this optimiser: copy.deepcopy((bnn, optimizer)) trains like the original."""
        own = ("train_size", "_temperature", "_warmup", "_posteriors", "_draws", "_watch")
        return super().__getstate__() | {name: vars(self)[name] for name in own}

    @property
    def temperature(self) -> float:
        """That of the coming step."""
        return self._temperature_in(0)

    def _temperature_in(self, steps: int) -> float:
        return positive_at(self._temperature, self.param_groups[0]["step"] + steps, "temperature")

    def sigma(self, posterior: SparseGaussian) -> Tensor:
        """1 / sqrt(lambda (h + delta)) of the live weights."""
        h = self.state[posterior.mu]["h"]
        return (self.train_size / self.temperature * (h + self._delta(posterior))).rsqrt()

    def _delta(self, posterior: SparseGaussian) -> float:
        return 1.0 / (self.train_size * posterior.prior_sigma**2)

    def _rho(self, posterior: SparseGaussian) -> Tensor:
        return posterior.rho_of(self.sigma(posterior).to(posterior.rho.dtype))

    @torch.no_grad()
    def _write_sigma(self, posterior: SparseGaussian) -> None:
        posterior.rho.copy_(self._rho(posterior))

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """Inside, theta is one draw from q, and backward passes estimate the curvature.

        A posterior that is pinned at its mean (addition criterion 2) stays there, and its h does not change in this step. If
        the block raises, all gradients since the last step are dropped, also those of earlier blocks.
        """
        refuse_sharded(self._posteriors.values())
        self._draws.forget_dropped(self.param_groups)
        try:
            with self._draws.pinned(self._posteriors.values(), self.train_size / self.temperature):
                yield
        except BaseException:
            self.zero_grad()  # what it has added to the gradients cannot be told from those of earlier thetas
            raise

    def _layer(self, posterior: SparseGaussian) -> Layer:
        rho = posterior.rho if posterior.sigma_map == "exp" else None  # the kernels know this map alone
        state, delta = self.state[posterior.mu], self._delta(posterior)
        return Layer(posterior.mu, state["g"], state["h"], state["excess"], rho, posterior.sigma_init, GAIN, delta)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step with the gradients of all thetas since the last step, which are used up by it.

        On the CPU a gradient that is not finite is an error, and nothing has changed then.
        """
        refuse_scaler(self)
        loss = None
        if closure is not None:
            with torch.enable_grad(), self.sampled():
                loss = closure()
        self._draws.refuse_none(self._posteriors)
        refuse_not_finite(parameter.grad for group in self.param_groups for parameter in group["params"])
        self._natural_step()
        plain_step(self, max(1, self._draws.samples))
        self.zero_grad()
        self._watch.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients since the last step, and the estimates of the curvature that came with them."""
        if set_to_none:
            # As torch does, without its look for a profiler, which takes as long as a small layer.
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
        else:
            eager_methods.zero_grad(self, set_to_none)
        self._draws.forget()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved state. g and h keep their precision; torch would give them that of mu.

        A network that was loaded before it has this sigma to the bit. One that was loaded before the optimiser was made has
        the sigma of a start since then, and gets that of the state back.
        """
        load_state(self, state_dict)
        for posterior in self._posteriors.values():
            if not torch.allclose(posterior.sigma.to(self.sigma(posterior).dtype), self.sigma(posterior), rtol=1e-3):
                self._write_sigma(posterior)

    def _natural_step(self) -> None:
        """The formulas of the module, for all layers with a gradient. Then sigma is that of the coming step."""
        lambda_ = self.train_size / self._temperature_in(1)  # an error before anything has changed
        h_hats, rates, evidence = self._draws.estimates(self.train_size / self.temperature), [], []
        posteriors: list[SparseGaussian] = []
        for group in self.param_groups:
            if group["kind"] == "mu":
                group["step"] += 1
                given = [mu for mu in group["params"] if mu.grad is not None]
                posteriors += [self._posteriors[mu] for mu in given]
                b1, b2 = group["betas"]
                lr = group["lr"] * min(1.0, group["step"] / max(1, self._warmup))
                rates += [Rates(lr, b1, b2, group["clip_radius"], group["step"])] * len(given)
                evidence += [Evidence(mu.grad, h_hats.get(mu), max(1, self._draws.samples)) for mu in given]
        layers = [self._layer(posterior) for posterior in posteriors]
        kernels.ivon_module(layers).step(layers, rates, evidence, lambda_)
        for posterior, layer in zip(posteriors, layers, strict=True):
            if layer.rho is None:
                self._write_sigma(posterior)

    def check_may_move(self) -> None:
        """Refuse an update of gamma between a theta and the step that uses its gradients."""
        self._draws.forget_dropped(self.param_groups)
        self._draws.refuse_pending()

    @torch.no_grad()
    def start_fresh(self, posterior: SparsePosterior, fresh: Tensor) -> None:
        """After an update of gamma: the weights at the places `fresh` (a mask) get the sigma of their h."""
        if isinstance(posterior, SparseGaussian) and posterior.mu in self.state:
            posterior.rho[fresh] = self._rho(posterior)[fresh]
