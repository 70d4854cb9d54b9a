"""Plain networks for the rows of a table, and how a recipe's `model` becomes one."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from ssvi.nn.models import BY_NAME, call_own, own_model


def table(*, classes: int, features: int, width: int = 64) -> nn.Sequential:
    """Two hidden layers of `width` units."""
    return nn.Sequential(
        nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
    )


def shallow_table(*, classes: int, features: int, width: int = 50) -> nn.Sequential:
    """One hidden layer of `width` units: with 50 the network of the published comparisons on UCI's tables."""
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, classes))


FOR_ROWS: dict[str, Callable[..., nn.Module]] = {"table": table, "shallow-table": shallow_table}


def build_for_rows(name: str, *, outputs: int, features: int, width: int = 0) -> nn.Module:
    """The network of that name for rows of `features` numbers; `width=0` is its usual width.

    `package.module:function` is your own: it is called with `classes`, the number of outputs, and with `features` and
    `width` if it names them among its arguments.
    """
    if name in BY_NAME:
        raise ValueError(f"model={name!r} is for images, and the data is a table: take one of {', '.join(FOR_ROWS)}")
    make = FOR_ROWS.get(name) or own_model(name, (*FOR_ROWS,))
    offered = {"features": features} | ({"width": width} if width else {})
    return call_own(name, make, outputs, offered)
