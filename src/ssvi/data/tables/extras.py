"""The packages that read and prepare tables. They are an extra: images do not need them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ssvi.data.split import DataError


def extra(module: str) -> Any:
    """A module of polars or scikit-learn; where it is missing, an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            f"tables need {module.partition('.')[0]}, which is not installed: pip install 'ssvi[table]'"
        ) from error
