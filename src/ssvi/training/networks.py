"""The plain network that a recipe names, for images or for the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from ssvi.data.tables import Preprocessing
from ssvi.nn import models
from ssvi.nn.row_models import FOR_ROWS, build_for_rows
from ssvi.training.likelihood_names import likelihood_of


def network_for_images(recipe: Mapping[str, Any], classes: int, shape: tuple[int, int, int]) -> nn.Module:
    """For images of (channels, height, width)."""
    if recipe["model"] in FOR_ROWS:
        raise ValueError(
            f"model={recipe['model']!r} is for tables, and the data are images: `ssvi train FILE.csv --target COLUMN`, or "
            f"take one of {', '.join(models.BY_NAME)}"
        )
    channels, height, width = shape
    size = models.image_size(height, width)
    return models.build(recipe["model"], classes=classes, channels=channels, size=size, width=recipe["width"])


def network_for_rows(recipe: Mapping[str, Any], table: Preprocessing) -> nn.Module:
    """For rows of a table, with the noise as a parameter, if it is learnt."""
    likelihood = likelihood_of(recipe["likelihood"], len(table.target.classes))
    outputs = likelihood.outputs
    net = build_for_rows(recipe["model"], outputs=outputs, features=table.features, width=recipe["width"])
    return likelihood.prepare(net)
