"""Groups of settings that several methods share. A method's `Settings` inherits those that it uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ssvi import allocation, criteria, families, structures
from ssvi.inference import addition
from ssvi.inference.subspace import Subspace
from ssvi.methods.settings import Rule, Settings, at_least, default_of, one_of, setting, share, whole, word_or_positive
from ssvi.nn.convert import to_bnn
from ssvi.nn.sigma_maps import SIGMA_MAPS
from ssvi.nn.starts import FAN_IN, NET
from ssvi.nn.supports import MAGNITUDE, RANDOM

MOST_MEMBERS = 1000
"""Networks that a run keeps: each is a file, and all of them are evaluated."""


@dataclass(frozen=True)
class Descent(Settings):
    """Gradient descent."""

    GROUP: ClassVar[str] = "Optimiser"
    optimizer: str = setting("sgd", "sgd (momentum) or adam", one_of(("sgd", "adam")))
    momentum: float = setting(0.9, "of sgd", share("the velocity that is kept", high_open=True))
    weight_decay: float = setting(0.0, "on everything but sigma; on mu it is a second prior", at_least(0))


@dataclass(frozen=True)
class SpreadDescent(Descent):
    """Gradient descent with a learning rate of its own for what spreads: sigma, and the gates of channels."""

    sigma_lr: float = setting(0.0, "learning rate of sigma; 0 means lr", at_least(0))


@dataclass(frozen=True)
class KeepDense(Settings):
    """Which layers are not made sparse."""

    GROUP: ClassVar[str] = "Network"
    keep_dense: tuple[str, ...] = setting(
        ("first",), "names or patterns of layers kept at density 1; 'first' is the first layer"
    )


@dataclass(frozen=True)
class Support(KeepDense):
    """How many weights live."""

    density: float = setting(
        0.05,
        "live weights / all weights of the sparse layers",
        Rule(lambda v: 0 < v <= 1, "in (0, 1]: 0.05 keeps 5 % of the weights"),
    )


@dataclass(frozen=True)
class Conversion(Settings):
    """How `to_bnn` converts a network."""

    GROUP: ClassVar[str] = "Posterior"
    skip: tuple[str, ...] = setting((), "names or patterns of layers that stay deterministic")
    mu_init: str | float = setting(
        default_of(to_bnn, "mu_init"),
        "'fan-in' for the network's initial weights at the scale of the sparse fan-in, 'net' for these weights as they are, "
        "or a number: standard deviation of a Gaussian",
        word_or_positive(FAN_IN, NET, zero=True),
    )


@dataclass(frozen=True)
class Allocation(Settings):
    """How the live weights are shared among the layers, and which of a layer's weights live first."""

    GROUP: ClassVar[str] = "Network"
    allocation: str = setting(
        default_of(to_bnn, "allocation"), "uniform or erk: live weights per layer", one_of(allocation.BY_NAME)
    )
    support: str = setting(
        default_of(to_bnn, "support"),
        "random or, for pretrained weights, magnitude: which of them live at the start",
        one_of((RANDOM, MAGNITUDE)),
    )
    structure: str = setting(
        structures.NONE,
        "none, block:B (B outputs live together) or N:M (N of every M inputs; density is N / M)",
        Rule(structures.is_known, "none, block:B or N:M with whole numbers, such as block:16 or 2:4"),
    )


@dataclass(frozen=True)
class Prior(Conversion):
    """The prior of a Gaussian posterior."""

    prior_sigma: str | float = setting(
        default_of(to_bnn, "prior_sigma"),
        "standard deviation of the prior, or 'fan-in': by the live weights per output",
        word_or_positive(FAN_IN),
    )


@dataclass(frozen=True)
class Posterior(Prior):
    """A Gaussian posterior and its prior."""

    sigma_init: str | float = setting(
        default_of(to_bnn, "sigma_init"),
        "start of every sigma, or 'fan-in': a share of the size that weights of the layer's fan-in have",
        word_or_positive(FAN_IN),
    )
    sigma_init_std: float = setting(0.0, "spread of the starts: |N(sigma_init, sigma_init_std^2)|", at_least(0))
    sigma_map: str = setting(
        default_of(to_bnn, "sigma_map"), "exp (sigma learns) or softplus (the authors')", one_of(SIGMA_MAPS)
    )


@dataclass(frozen=True)
class Family(Posterior):
    """A posterior of any family, and its prior."""

    posterior: str = setting(
        default_of(to_bnn, "posterior"),
        "gaussian, laplace or student-t:NU (NU greater than 2); the last two with :moment-matched behind: by Gaussian noise",
        Rule(
            families.is_known,
            "gaussian, laplace, student-t, or student-t:NU with NU greater than 2, such as student-t:5; laplace and "
            "student-t also with :moment-matched behind",
        ),
    )


@dataclass(frozen=True)
class Bound(Settings):
    """The weight of the KL in the evidence lower bound."""

    GROUP: ClassVar[str] = "Posterior"
    beta_max: float = setting(0.1, "multiplies KL / N after the warm-up", at_least(0))
    warmup: float = setting(0.5, "share of the steps in which beta rises from 0", share("the steps"))


@dataclass(frozen=True)
class Updates(Settings):
    """When gamma is updated, and how many weights are replaced."""

    GROUP: ClassVar[str] = "Updates of gamma"
    every: int = setting(20, "steps per update of gamma", whole(1))
    rate: float = setting(0.3, "r_0: share of live weights replaced, falling to 0 as a cosine", share("live weights"))
    until: float = setting(0.75, "share of the steps after which gamma is frozen", share("the steps"))
    grace: int = setting(
        default_of(Subspace, "grace"), "updates of gamma for which a fresh weight is not removed", whole(0)
    )
    mc_steps: int = setting(
        default_of(Subspace, "mc_steps"), "K of addition criterion 3: batches that the scores are of", whole(1)
    )
    candidates: int = setting(
        0, "for K > 1: positions whose scores are kept between batches, per weight to add; 0 keeps all", whole(0)
    )
    skip_step: bool = setting(False, "no optimiser step on the batch of an update (the authors' code)")


@dataclass(frozen=True)
class Growth(Updates):
    """Which weights come in."""

    addition: str = setting(
        default_of(Subspace, "addition"), "addition criterion: sample, mean, random or snr", one_of(addition.BY_NAME)
    )


@dataclass(frozen=True)
class Selection(Growth):
    """Which weights leave, and which come in."""

    removal: str = setting(default_of(Subspace, "removal"), "removal criterion", one_of(criteria.BY_NAME))
    record_iou: bool = setting(False, "write to iou.jsonl, at each update, whether the removal criteria agree")


@dataclass(frozen=True)
class Criteria(Selection):
    """Which weights leave, which come in, and with which sigma."""

    fresh_sigma: str | float = setting(
        default_of(Subspace, "fresh_sigma"),
        "'mean', 'mean_rho' (the authors') or a number",
        word_or_positive("mean", "mean_rho"),
    )


@dataclass(frozen=True)
class Members(Settings):
    """An ensemble."""

    GROUP: ClassVar[str] = "Network"
    members: int = setting(5, "networks of the ensemble", whole(1, MOST_MEMBERS))


@dataclass(frozen=True)
class Chain(Settings):
    """A sampler, and the states that it keeps."""

    GROUP: ClassVar[str] = "Posterior"
    members: int = setting(5, "states that a sampler keeps", whole(1, MOST_MEMBERS))
    burn_in: float = setting(
        0.5,
        "share of the epochs in which a sampler's learning rate falls and no state is kept",
        share("the epochs", high_open=True),
    )
    lr_floor: float = setting(0.01, "the share of lr that a sampler keeps after the burn-in", share("lr"))
    temperature: float = setting(1.0, "of a sampler; 1 is the posterior, less is colder", at_least(0))
