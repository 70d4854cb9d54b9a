"""Setups: a data set and a network that are trained in one way by every method. A scale has a few of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ssvi import methods
from ssvi.reproduction.paper import CIFAR_10
from ssvi.training import recipe_files
from ssvi.training.recipe import Recipe, fields_of

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Setup:
    """A recipe of the package, and what is changed in it."""

    name: str
    """Begins the names of the run folders."""
    recipe: str
    changes: Mapping[str, Any] = field(default_factory=lambda: NOTHING, hash=False)
    """Settings in place of those of the recipe, for the methods that have them."""
    by_authors: tuple[str, ...] = ()
    """Methods that have the settings of their authors, the first that `ssvi tune` tries, before `changes`."""
    of_paper: str = ""
    """The recipe of the paper's own code, for the methods that it trains."""
    in_paper: tuple[str, ...] = ()
    """Those methods."""
    stands_for: str = CIFAR_10
    """The data set of the paper whose numbers stand beside."""

    def recipe_of(self, method: str) -> Recipe:
        """The recipe of a method in this setup."""
        known = fields_of(method)
        authors = methods.get(method).SEARCH.first[0] if method in self.by_authors else {}
        changes = {key: value for key, value in self.changes.items() if key in known}
        base = self.of_paper if method in self.in_paper else self.recipe
        return recipe_files.load(base, method).replace(**{**authors, **changes})
