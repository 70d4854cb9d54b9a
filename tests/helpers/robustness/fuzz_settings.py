"""Random settings of recipes: sensible ones, and values that no setting should take."""

from __future__ import annotations

import random
from dataclasses import Field
from typing import Any

from ssvi import methods
from ssvi.training.recipe import all_fields, fields_of

SMALL = {
    "data": "digits", "examples": 60, "width": 2, "epochs": 1, "batch_size": 16, "threads": 1, "samples": 2,
    "batchnorm_batches": 1, "validation": 0.1, "model": "mlp",
}  # fmt: skip
"""A run of a second."""


def small(method: str) -> dict[str, Any]:
    """The settings of a run of a second by this method; the usual density would leave nothing of so small a network."""
    density = {"density": 0.5} if "density" in fields_of(method) else {}
    return SMALL | {"method": method} | density


SENSIBLE: dict[str, tuple[Any, ...]] = {
    "epochs": (1, 2, 3), "batch_size": (1, 8, 16, 64), "width": (1, 2, 4), "samples": (1, 3), "examples": (10, 40, 100),
    "model": ("mlp", "lenet", "resnet20"), "validation": (0.0, 0.1, 0.5), "seed": (0, 1, 2**40), "lr": (1e-3, 0.1),
    "density": (1.0, 0.5, 0.05, 0.01), "every": (1, 2, 10), "rate": (0.0, 0.1, 0.9), "threads": (0, 1, 2),
    "augment": ("none", "crop", "crop-flip"), "size": ("", "4", "6x8"), "channels": (0, 1, 3), "clip": (0.0, 1.0),
    "precision": ("float32", "bfloat16"),
    "checkpoint_steps": (0, 1, 3), "members": (1, 2), "batchnorm_batches": (0, 1, 4), "mc_steps": (1, 2),
    "pretrained": ("",), "device": ("cpu",), "data": ("digits",), "target": ("",), "test": ("",), "task": ("auto",),
    "likelihood": ("auto",), "categories": ((),), "ignore": ((),), "test_share": (0.0,), "memory": (0.0, 0.4),
}  # fmt: skip
"""Values that a user might give, for settings whose type and rule do not tell them."""

HOSTILE: dict[type, tuple[Any, ...]] = {
    bool: ("maybe", 2, ""),
    int: (-1, 0, 7, 2**31, 2**63, 10**30, 0.5, "two", ""),
    float: (float("nan"), float("inf"), -1.0, -1e-9, 0.0, 1.0, 1.5, 95.0, 1e-300, 1e300, "half", ""),
    str: (
        "",
        "foo",
        "SSVI",
        "../..",
        "/dev/null",
        "a\tb",
        "ä" * 300,
        "os:system",
        "digits:",
        ":",
        "0",
        "-1",
        "nan",
        "[]",
    ),
    tuple: ("x", ("head", "foo*"), ("",), 3),
}
"""Values for each type; some of them are right."""


def sensible(draw: random.Random, name: str, about: Field[Any]) -> Any:
    """A value that the setting should take."""
    if name in SENSIBLE:
        return draw.choice(SENSIBLE[name])
    rule = about.metadata.get("rule")
    if rule is not None and rule.must.startswith("one of "):
        return draw.choice(rule.must.removeprefix("one of ").split(", "))
    if isinstance(about.default, bool):
        return draw.random() < 0.5
    if isinstance(about.default, float) and about.default > 0:
        return about.default * draw.choice((0.5, 1.0, 2.0))
    return about.default


def hostile(draw: random.Random, about: Field[Any]) -> Any:
    """A value that the setting may have to refuse."""
    kind = draw.choice(list(HOSTILE)) if draw.random() < 0.2 else type(about.default)
    return draw.choice(HOSTILE.get(kind, HOSTILE[str]))


def random_settings(draw: random.Random, bad: bool) -> dict[str, Any]:
    """The settings of a small run by a random method; some of them random and, if `bad`, one or two of them hostile."""
    method = draw.choice(methods.NAMES)
    own, settings = fields_of(method), small(method)
    for name in draw.sample(sorted(set(own) - {"method"}), draw.randint(0, 5)):
        settings[name] = sensible(draw, name, own[name])
    if bad:
        pool = all_fields() if draw.random() < 0.2 else own
        for name in draw.sample(sorted(pool), draw.randint(1, 2)):
            settings[name] = hostile(draw, pool[name])
    return settings


def misspelt(draw: random.Random, name: str) -> str:
    """The name with a letter dropped, doubled or changed."""
    at = draw.randrange(len(name))
    return name[:at] + draw.choice(("", name[at] * 2, draw.choice("abcxyz-."))) + name[at + 1 :]
