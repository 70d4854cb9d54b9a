"""Searches that several methods share."""

from __future__ import annotations

from typing import Any

from ssvi.methods.search import Choice, Dimension, Range, Search
from ssvi.nn.starts import FAN_IN

POINT = Search(
    {"lr": Range(0.01, 1.0), "weight_decay": Range(1e-5, 0.1, or_else=0.0)},
    first=({"lr": 0.1, "weight_decay": 5e-4},),
)
"""Point estimates. The first settings are those of RigL's authors, and of the literature on CIFAR, by momentum SGD."""

NATURAL = Search(
    {
        "lr": Range(0.02, 1.0),
        "temperature": Range(0.01, 1.0, most=1.0),
        "rest_lr": Range(2e-3, 0.5),
        "rest_decay": Range(1e-5, 0.1, or_else=0.0),
    },
    first=({"lr": 0.2, "temperature": 1.0, "rest_lr": 0.1, "rest_decay": 5e-4},),
)
"""Natural gradients. First the bound itself (temperature 1), as IVON's authors have it; the rest as by SGD on CIFAR."""

AUTHORS_OF_SSVI: dict[str, Any] = {
    "lr": 0.01, "beta_max": 0.01, "prior_sigma": 0.005, "weight_decay": 5e-4, "mu_init": 0.01, "sigma_map": "softplus",
    "sigma_init": 6e-4, "sigma_init_std": 5e-4,
}  # fmt: skip
"""What the code of the SSVI paper trains with, at density 1 too (the recipe cifar10-paper)."""

BAYESIAN: dict[str, Dimension] = {
    "lr": Range(5e-4, 0.5),
    "beta_max": Range(1e-3, 3.0),
    "prior_sigma": Range(2e-3, 2.0, or_else=FAN_IN),
}
"""The space of Gaussian posteriors that are trained by local reparameterisation."""

PRUNED = Search(
    {"lr": Range(5e-3, 0.5), "beta_max": Range(0.01, 10.0), "prune_scope": Choice(("layer", "global"))},
    first=({"lr": 0.01, "beta_max": 1.0, "prune_scope": "global"},),
)
"""Dense VI that is pruned: first the bound itself, and all layers ranked together, as Graves and Blundell have it."""

GATES: dict[str, Dimension] = {
    "optimizer": Choice(("adam",)),
    "lr": Range(3e-4, 0.03),
    "sigma_lr": Range(3e-4, 0.3),
    "beta_max": Range(0.02, 20.0),
}
"""The space of the methods with a gate on every channel."""

TRAINED_START = Choice((0.0, 0.5))
"""Of methods whose authors also start from a trained network: from scratch, or after half of the epochs."""
