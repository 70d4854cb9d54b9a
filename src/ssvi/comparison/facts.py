"""What a comparison asks about a method. Every question that depends on the method's name is here and in `trials`."""

from __future__ import annotations

from ssvi.methods.catalogue import METHODS, Method


def method_names() -> list[str]:
    """All methods, in the order of the tables."""
    return list(METHODS)


def title(method: str) -> str:
    """The method's name in a table."""
    return _method(method).title


def unit(method: str) -> str:
    """What the method removes: "weight", "channel" or "none"."""
    return _method(method).unit


def aims_at_density(method: str) -> bool:
    """Whether the setting `density` decides how sparse the network is. Where not, sparsity is a result, or there is none."""
    return _method(method).targets


def is_reference(method: str) -> bool:
    """Whether this is dense VI, whose training FLOPs are the unit of the column "of dense VI"."""
    return method == "vi"


def is_main(method: str) -> bool:
    """Whether this is the method of the paper, which the table of dense networks shows too."""
    return method == "ssvi"


def _method(name: str) -> Method:
    return METHODS[name]
