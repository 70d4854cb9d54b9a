"""Recipes: everything that makes the numbers of a training run, the common settings and those of its method.

Every setting is a flag of `ssvi train`. `ssvi.training.recipe_files` reads recipes from TOML.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any

from ssvi import methods
from ssvi.data import FITS, DataSet, augment, load, parse_size
from ssvi.data.tables import TASKS, TableData, load_table
from ssvi.methods.settings import (
    POSITIVE,
    RecipeError,
    Settings,
    at_least,
    check,
    check_value,
    one_of,
    same_type,
    setting,
    settings_fields,
    share,
    whole,
    word_or_number,
)
from ssvi.training.likelihood_names import LIKELIHOODS
from ssvi.training.recipe_rules import (
    CHANNELS,
    DATA,
    DEVICE,
    MODEL,
    PRECISIONS,
    SAMPLES,
    SEED,
    SIZE,
    THREADS,
    WIDTH,
    check_warm_start,
)
from ssvi.training.setting_values import coerced, toml, unknown_key
from ssvi.training.table_settings import check_kind, is_table, table_request

__all__ = ["Recipe", "RecipeError", "all_fields", "fields_of", "from_mapping", "toml"]

AUGMENTATIONS = {"none": None, "crop": augment.crop, "crop-flip": augment.crop_flip}


@dataclass(frozen=True)
class Recipe:
    """The settings of one run: those that all methods have, and those of its method."""

    data: str = setting(
        "digits",
        "data set: a name (`ssvi recipes` lists them), a .npz file, a folder of class folders, or a table",
        DATA,
    )
    target: str = setting("", "of a table: the column that is predicted")
    task: str = setting("auto", "of a table: 'number', 'classes' or 'auto': texts are classes", one_of(TASKS))
    likelihood: str = setting(
        "auto", f"of a table with a number as target: {', '.join(LIKELIHOODS)} (which is gaussian)", one_of(LIKELIHOODS)
    )
    categories: tuple[str, ...] = setting((), "of a table: columns of numbers that are categories")
    ignore: tuple[str, ...] = setting((), "of a table: columns that the network does not see")
    test: str = setting("", "of a table: another file, with the rows for testing")
    test_share: float = setting(
        0.0, "of a table: or the share of its rows that is kept for testing", share("the rows", high_open=True)
    )
    validation: float = setting(
        0.1, "share of the training set kept for validation", share("the images", high_open=True)
    )
    examples: int = setting(0, "training examples used, the same share of every class; 0: all of them", whole(0))
    size: str = setting("", "size that the images get: N or HxW, height x width; empty: as they are", SIZE)
    fit: str = setting("resize", "how they get it: 'resize' stretches, 'crop' and 'pad' keep proportions", one_of(FITS))
    channels: int = setting(0, "1: grey, 3: colour, 0: as the images are", CHANNELS)
    augment: str = setting("none", "'none', 'crop-flip' or 'crop'", one_of(AUGMENTATIONS))
    model: str = setting(
        "lenet",
        "mlp, lenet, resnet18, resnet20; for tables table, shallow-table; or your own as package.module:function",
        MODEL,
    )
    width: int = setting(0, "width of the network; 0 is its usual one", WIDTH)
    pretrained: str = setting("", "trained weights to start from: a run folder, a model file, .safetensors or .pt")
    warm_start: float = setting(
        0.0,
        "share of the epochs that trains the plain network first; the method starts from it",
        share("the epochs", high_open=True),
    )
    warm_lr: float = setting(0.1, "learning rate of these epochs, by momentum SGD with weight decay 5e-4", POSITIVE)
    method: str = setting("ssvi", f"{', '.join(methods.NAMES)}, or a module of your own")
    epochs: int = setting(80, "passes over the training set; 0: as many as make 4,000 steps, but at least 20", whole(0))
    batch_size: int = setting(64, "examples per step", whole(1))
    micro_batches: int = setting(
        1,
        "parts of a batch that pass one after the other, for less memory; natural gradients: each has its own theta",
        whole(1),
    )
    lr: float = setting(methods.about("ssvi").lr, "learning rate, if not that of the method", POSITIVE)
    per_epoch: bool = setting(False, "change the learning rate and beta once per epoch and not every step")
    clip: float = setting(
        0.0, "largest norm of the gradients of a step, by natural gradients of the biases alone; 0: any", at_least(0)
    )
    samples: int = setting(5, "samples of theta in the final evaluation", SAMPLES)
    batchnorm_batches: int = setting(
        8,
        "training batches for BatchNorm's statistics of each theta, computed at the end; 0: its running ones",
        whole(0),
    )
    sync_batchnorm: bool = setting(False, "with several processes: BatchNorm by the statistics of the whole batch")
    seed: int = setting(0, "of everything random", SEED)
    precision: str = setting(
        "float32", "'float32', or 'bfloat16': activations by autocast; weights and gradients stay", one_of(PRECISIONS)
    )
    device: str = setting("cpu", "where the network is trained: cpu, cuda, cuda:1, mps", DEVICE)
    threads: int = setting(0, "CPU threads; 0 leaves torch's choice", THREADS)
    checkpoint_steps: int = setting(0, "a checkpoint every so many steps besides that of each epoch; 0: none", whole(0))
    settings: Settings = dataclasses.field(default_factory=methods.get("ssvi").Settings)

    def __post_init__(self) -> None:
        check(self)
        own = methods.get(self.method).Settings
        if type(self.settings) is not own:
            raise RecipeError(
                f"settings={self.settings!r} are not those of method={self.method!r}: take recipe.replace(method=...)"
            )
        if self.epochs:
            check_warm_start(self.warm_start, self.epochs, self.method)
            self.all_epochs  # noqa: B018 - an error if they are too few for the method
        check_kind(self.values, COMMON)

    @property
    def is_table(self) -> bool:
        """Whether the data are a table, and not images."""
        return is_table(self.data, self.target)

    @property
    def warm_epochs(self) -> int:
        """The epochs of plain training before the method begins."""
        return max(1, round(self.warm_start * self.epochs)) if self.warm_start else 0

    @property
    def all_epochs(self) -> int:
        """The epochs of the whole run: an ensemble trains its members one after the other."""
        warm = self.warm_epochs
        return warm + methods.get(self.method).epochs(self.settings, self.epochs - warm)

    def load_table(self) -> TableData:
        """The table, with the target and the columns that the recipe says."""
        return load_table(self.data, table_request(self.values))

    def load_data(self, data_dir: str | Path | None = None) -> DataSet:
        """The images, in the shape that the recipe says."""
        if self.is_table:
            raise RecipeError(f"data={self.data!r} is a table, but this needs images")
        return load(self.data, data_dir, size=parse_size(self.size), fit=self.fit, channels=self.channels)

    @property
    def values(self) -> dict[str, Any]:
        """All settings by name, the common ones first."""
        common = {name: getattr(self, name) for name in COMMON}
        return common | {name: getattr(self.settings, name) for name in settings_fields(type(self.settings))}

    def replace(self, **changes: Any) -> Recipe:
        """The same with some settings changed. Another method takes over the values of the settings that it shares: those
        of the same name and type."""
        method = str(changes.get("method", self.method))
        own, known = fields_of(self.method), fields_of(method)
        for key in changes:
            if key not in known:
                raise _not_used(key, method)
        shared = {key: value for key, value in self.values.items() if key in known and same_type(own[key], known[key])}
        if shared["lr"] == methods.about(self.method).lr:
            del shared["lr"]  # it is not chosen, but that of the method
        return from_mapping(shared | changes)

    def to_toml(self) -> str:
        """All settings, as a recipe file."""
        return "".join(f"{name} = {toml(value)}\n" for name, value in self.values.items())


COMMON: dict[str, Field[Any]] = {about.name: about for about in fields(Recipe) if about.name != "settings"}
"""The settings that all methods have."""


def fields_of(method: str) -> dict[str, Field[Any]]:
    """All settings of a recipe with this method."""
    return COMMON | dict(settings_fields(methods.get(method).Settings))


def all_fields() -> dict[str, Field[Any]]:
    """The settings of all methods of the package: the flags of `ssvi train`."""
    everything = dict(COMMON)
    for method in methods.NAMES:
        for name, about in settings_fields(methods.get(method).Settings).items():
            everything.setdefault(name, about)
    return everything


def from_mapping(values: Mapping[str, Any]) -> Recipe:
    """A recipe from names and values. Those not given have their defaults; those of other methods are checked alone."""
    method = str(values.get("method", COMMON["method"].default))
    values, known = _current(values), fields_of(method)
    everywhere = all_fields() | known
    for key in values:
        if key not in everywhere:
            raise unknown_key(key, everywhere)
    typed = {key: coerced(key, value, everywhere[key]) for key, value in values.items()}
    for key, value in typed.items():
        check_value(everywhere[key], value)  # also where another method has the setting: a mistake is a mistake
    given = {key: value for key, value in typed.items() if key in known}
    own = {key: value for key, value in given.items() if key not in COMMON}
    common = {"lr": methods.about(method).lr} | {key: value for key, value in given.items() if key in COMMON}
    return Recipe(**common, settings=methods.get(method).Settings(**own))


def _current(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of earlier recipes as they are today: a threshold was a string, and 'own' the default of the method."""
    threshold = values.get("threshold")
    if not isinstance(threshold, str):
        return dict(values)
    rest = {key: value for key, value in values.items() if key != "threshold"}
    return rest if threshold == "own" else rest | {"threshold": word_or_number(threshold)}


def _not_used(key: str, method: str) -> RecipeError:
    """The error for a setting of other methods, or of none."""
    users = [name for name in methods.NAMES if key in fields_of(name)]
    if not users:
        return unknown_key(key, fields_of(method))
    return RecipeError(f"method {method!r} does not use {key!r}: leave it out (it is a setting of {', '.join(users)})")
