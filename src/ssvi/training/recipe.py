"""Recipes: everything that makes the numbers of a training run, flat, in one frozen dataclass.

A recipe file is TOML and holds only what differs from the defaults here, and a table for each method that wants other
settings than the rest. Every field is a flag of `ssvi train`.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from ssvi.errors import UserError
from ssvi.methods.catalogue import METHODS


class RecipeError(UserError, ValueError):
    """A recipe that cannot be: names the key, the value and the remedy."""


def _about(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Recipe:
    """The settings of one run."""

    data: str = _about(
        "data set: a name (`ssvi recipes` lists them), a .npz file, or a folder of class folders", "digits"
    )
    validation: float = _about("share of the training set kept for validation", 0.1)
    augment: str = _about("'none', 'crop-flip' or 'crop'", "none")
    model: str = _about("mlp, lenet, resnet18, resnet20, or your own as package.module:function", "lenet")
    width: int = _about("width of the network; 0 is its usual one", 0)
    method: str = _about(", ".join(METHODS), "ssvi")
    density: float = _about("live weights / all weights of the sparse layers", 0.05)
    keep_dense: tuple[str, ...] = _about(
        "names or patterns of layers kept at density 1; 'first' is the first layer", ("first",)
    )
    skip: tuple[str, ...] = _about("names or patterns of layers that stay deterministic", ())
    allocation: str = _about("uniform or erk", "uniform")
    prior_sigma: float = _about("standard deviation of the prior", 0.1)
    sigma_init: float = _about("start of every sigma", 0.01)
    sigma_init_std: float = _about("spread of the starts: |N(sigma_init, sigma_init_std^2)|", 0.0)
    sigma_map: str = _about("exp (sigma learns) or softplus (the authors')", "exp")
    mu_init: str = _about("'net' for torch's own initial weights, or a number: standard deviation of a Gaussian", "net")
    epochs: int = _about("passes over the training set", 80)
    batch_size: int = _about("examples per step", 64)
    optimizer: str = _about("sgd (momentum) or adam", "sgd")
    lr: float = _about("learning rate", 0.05)
    sigma_lr: float = _about("learning rate of sigma; 0 means lr", 0.0)
    momentum: float = _about("of sgd", 0.9)
    weight_decay: float = _about("on everything but sigma; on mu it is a second prior", 0.0)
    beta_max: float = _about("multiplies KL / N after the warm-up", 0.1)
    warmup: float = _about("share of the steps in which beta rises from 0", 0.5)
    per_epoch: bool = _about("change the learning rate and beta once per epoch and not every step", False)
    every: int = _about("steps per update of gamma", 20)
    rate: float = _about("r_0: share of live weights replaced, falling to 0 as a cosine", 0.3)
    until: float = _about("share of the steps after which gamma is frozen", 0.75)
    removal: str = _about("removal criterion", "snr_abs")
    addition: str = _about("addition criterion: sample, mean or random", "sample")
    mc_steps: int = _about("K of addition criterion 3", 1)
    fresh_sigma: str = _about("'mean', 'mean_rho' (the authors') or a number", "mean")
    skip_step: bool = _about("no optimiser step on the batch of an update (the authors' code)", False)
    threshold: str = _about(
        "of pruning: log alpha of vd and group-vd, signal-to-noise of sbp; 'own' is 3, 3 and 1", "own"
    )
    prune_scope: str = _about(
        "snr-prune and snr-finetune: 'layer' keeps the same share of each layer, 'global' ranks them together", "layer"
    )
    finetune: float = _about("snr-finetune: share of the epochs after the pruning, gamma fixed", 0.25)
    members: int = _about("networks of an ensemble, or states that a sampler (aeb, mbnn) keeps", 5)
    burn_in: float = _about("share of the epochs in which a sampler's learning rate falls and no state is kept", 0.5)
    lr_floor: float = _about("the share of lr that a sampler keeps after the burn-in", 0.01)
    temperature: float = _about("of a sampler; 1 is the posterior, less is colder", 1.0)
    lam: float = _about("mbnn: lambda of its prior on the number of channels, (lambda log N)^5", 0.05)
    v0: float = _about("aeb: scale of the Laplace spike", 0.1)
    v1: float = _about("aeb: variance of the Gaussian slab", 0.01)
    samples: int = _about("samples of theta in the final evaluation", 5)
    seed: int = _about("of everything random", 0)
    threads: int = _about("CPU threads; 0 leaves torch's choice", 0)
    checkpoint_steps: int = _about("a checkpoint every so many steps besides that of each epoch; 0: none", 0)

    def __post_init__(self) -> None:
        for name, (holds, must) in _RULES.items():
            if not holds(getattr(self, name)):
                raise RecipeError(f"{name}={getattr(self, name)!r} must be {must}")
        if METHODS[self.method].chain and self.state_gap < 1:
            raise RecipeError(
                f"epochs={self.epochs} with burn_in={self.burn_in} leave too few epochs to keep "
                f"members={self.members} states, one per epoch at most: raise epochs, or lower burn_in or members"
            )

    @property
    def state_gap(self) -> int:
        """Epochs from one state that a sampler keeps to the next; the last one is that of the last epoch."""
        return (self.epochs - int(self.burn_in * self.epochs)) // self.members

    @property
    def all_epochs(self) -> int:
        """The epochs of the whole run: an ensemble trains its members one after the other."""
        return self.epochs * (self.members if self.method == "ensemble" else 1)

    def replace(self, **changes: Any) -> Recipe:
        """The same with some fields changed; unknown names and wrong types are errors."""
        return dataclasses.replace(self, **{key: _coerce(key, value) for key, value in changes.items()})

    def to_toml(self) -> str:
        """All fields, as a recipe file."""
        return "".join(f"{f.name} = {toml(getattr(self, f.name))}\n" for f in fields(self))


_RULES: dict[str, tuple[Any, str]] = {
    "density": (lambda v: 0 < v <= 1, "in (0, 1]: 0.05 keeps 5 % of the weights"),
    "validation": (lambda v: 0 <= v < 1, "in [0, 1)"),
    "augment": (lambda v: v in ("none", "crop", "crop-flip"), "none, crop or crop-flip"),
    "method": (lambda v: v in METHODS, f"one of {', '.join(METHODS)}"),
    "threshold": (lambda v: v == "own" or isinstance(word_or_number(v), float), "'own' or a number"),
    "prune_scope": (lambda v: v in ("layer", "global"), "layer or global"),
    "finetune": (lambda v: 0 < v < 1, "in (0, 1): a share of the epochs"),
    "members": (lambda v: v >= 1, "at least 1"),
    "burn_in": (lambda v: 0 <= v < 1, "in [0, 1): a share of the epochs"),
    "lr_floor": (lambda v: 0 <= v <= 1, "in [0, 1]: a share of lr"),
    "temperature": (lambda v: v >= 0, "0 or more"),
    "lam": (lambda v: v >= 0, "0 or more"),
    "v0": (lambda v: v > 0, "positive"),
    "v1": (lambda v: v > 0, "positive"),
    "optimizer": (lambda v: v in ("sgd", "adam"), "sgd or adam"),
    "epochs": (lambda v: v >= 1, "at least 1"),
    "batch_size": (lambda v: v >= 1, "at least 1"),
    "lr": (lambda v: v > 0, "positive"),
    "sigma_lr": (lambda v: v >= 0, "positive, or 0 for lr"),
    "prior_sigma": (lambda v: v > 0, "positive"),
    "sigma_init": (lambda v: v > 0, "positive"),
    "beta_max": (lambda v: v >= 0, "0 or more"),
    "warmup": (lambda v: 0 <= v <= 1, "in [0, 1]: a share of the steps"),
    "until": (lambda v: 0 <= v <= 1, "in [0, 1]: a share of the steps"),
    "rate": (lambda v: 0 <= v <= 1, "in [0, 1]"),
    "every": (lambda v: v >= 1, "at least 1"),
    "samples": (lambda v: v >= 1, "at least 1"),
    "width": (lambda v: v >= 0, "0 or more"),
    "threads": (lambda v: v >= 0, "0 or more"),
    "checkpoint_steps": (lambda v: v >= 0, "0 or more"),
}

FIELDS = {f.name: f for f in fields(Recipe)}


def names() -> dict[str, str]:
    """The recipes that come with the package, each with the first comment of its file."""
    found = sorted(p for p in (files("ssvi") / "recipes").iterdir() if p.name.endswith(".toml"))  # type: ignore[type-var]
    return {p.name.removesuffix(".toml"): p.read_text().splitlines()[0].lstrip("# ") for p in found}


def load(name: str | Path, method: str | None = None) -> Recipe:
    """The recipe of that name, or in that file; for a method that is not the recipe's own, with its table there."""
    packaged = files("ssvi") / "recipes" / f"{name}.toml"
    if packaged.is_file():
        return parse(packaged.read_text(), str(name), method)
    path = Path(name)
    if not path.is_file():
        near = get_close_matches(str(name), names(), 1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f"take one of {', '.join(names())}, or the path of a .toml file"
        )
        raise RecipeError(f"recipe {str(name)!r} does not exist: {hint}")
    return parse(path.read_text(), str(path), method)


def parse(text: str, where: str, method: str | None = None) -> Recipe:
    """A recipe from TOML. A table with the name of a method, [vd], holds what differs for that method."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{where} is not TOML: {error}") from error
    tables = {key: values.pop(key) for key in METHODS if isinstance(values.get(key), dict)}
    chosen = method or values.get("method", "ssvi")
    return from_mapping(values | {"method": chosen} | tables.get(chosen, {}))


def from_mapping(values: Mapping[str, Any]) -> Recipe:
    """A recipe from keys and values; those not given have their defaults."""
    return Recipe(**{key: _coerce(key, value) for key, value in values.items()})


def _coerce(key: str, value: Any) -> Any:
    """The value in the type of its field: 1 is a fine float, "1" is not an int."""
    if key not in FIELDS:
        near = get_close_matches(key, FIELDS, 1)
        raise RecipeError(f"unknown key {key!r}" + (f": did you mean {near[0]!r}?" if near else ""))
    kind = type(FIELDS[key].default)
    if kind is tuple and isinstance(value, (list, tuple)):
        return tuple(str(item) for item in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)  # mu_init and fresh_sigma are a word or a number
    if type(value) is not kind:
        raise RecipeError(f"{key}={value!r} must be of type {kind.__name__}")
    return value


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def word_or_number(value: str) -> str | float:
    """A field that takes a word or a number, as the library takes it."""
    try:
        return float(value)
    except ValueError:
        return value
