"""The methods that train a network, one module each with the same members in the same order (`ssvi.methods.base.Method`).

No code outside this package depends on which method it is. A method of your own is a module with these members: give its
dotted name as `--method` (docs/new-method.md).
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ssvi.methods.base import MEMBERS, About, Method
from ssvi.methods.settings import RecipeError

__all__ = ["NAMES", "About", "Method", "about", "get", "present_name"]

NAMES = (
    "ssvi", "ssvi-lrt", "ssvi-ensemble", "vi", "ivon", "deterministic", "ensemble", "snr-prune", "snr-finetune", "rigl",
    "set", "static", "vd", "group-vd", "sbp", "aeb", "mbnn",
)  # fmt: skip
"""The methods that come with the package, in the order of the tables."""

LONGEST_NAME = 200
"""Of a module of one's own: its file must have that name."""


def get(name: str) -> Method:
    """The method of that name, or the module of your own with that dotted name."""
    if name in NAMES:
        return _module(f"ssvi.methods.{name.replace('-', '_')}")
    dotted = len(name) < LONGEST_NAME and all(part.isidentifier() for part in name.split("."))
    if not dotted or ("." not in name and not _importable(name)):
        raise RecipeError(
            f"method={reprlib.repr(name)} must be one of {', '.join(NAMES)}, or a module of your own: is its folder on "
            "PYTHONPATH?"
        )
    try:
        return _module(name)
    except RecipeError:
        raise
    except (Exception, SystemExit) as error:  # the module is the user's, and may do anything when it is imported
        said = f"{type(error).__name__}: {error}"
        raise RecipeError(f"method={name!r} cannot be imported ({said}): is its folder on PYTHONPATH?") from error


def about(name: str) -> About:
    """The `ABOUT` of the method of that name."""
    return get(name).ABOUT


def present_name(name: str, settings: Collection[str]) -> str:
    """What a method is called today, by the name and the settings in a recipe.

    In version 0.1 "ssvi" was trained by local reparameterisation, and its recipes have a beta_max.
    """
    return "ssvi-lrt" if name == "ssvi" and "beta_max" in settings else name


def _module(dotted: str) -> Method:
    module: Any = import_module(dotted)
    if missing := [member for member in MEMBERS if not hasattr(module, member)]:
        raise RecipeError(f"method={dotted!r} is not a method: the module lacks {', '.join(missing)}")
    return cast(Method, module)


def _importable(name: str) -> bool:
    """Whether a module of that plain name is loaded, or lies in a folder of the import path as a single file."""
    return name in sys.modules or any((Path(folder) / f"{name}.py").is_file() for folder in sys.path)
