"""How many weights of each layer live, and what structure they have."""

from __future__ import annotations

import math
from numbers import Real
from typing import NamedTuple

from torch import nn

from ssvi import allocation as allocations
from ssvi.nn.conversion_rules import Choice
from ssvi.nn.uses import Use, shape_by_output, weight_axes
from ssvi.structures import Structure
from ssvi.structures.units import Single, Units


class Live(NamedTuple):
    """The live weights of one layer."""

    s: int
    units: Units


def resolve_density(density: float | None, structure: Structure) -> float:
    """The density, which a structure may fix."""
    _check_is_number(density)
    fixed = structure.density
    if density is None and fixed is None:
        raise ValueError("density is missing: to_bnn(net, density=0.05) keeps 5 % of the weights (95 % sparsity)")
    if density is None or fixed is None:
        density = density if fixed is None else fixed
    elif not math.isclose(density, fixed):
        raise ValueError(
            f"density={density} and structure={structure} contradict: take density={fixed}, or leave it out"
        )
    if density is None or not 0 < density <= 1:
        raise ValueError(f"density={density!r} must be in (0, 1]: 0.05 keeps 5 % of the weights (95 % sparsity)")
    return density


def _check_is_number(density: object) -> None:
    if density is not None and not isinstance(density, Real):
        raise TypeError(
            f"density={density!r} must be a number in (0, 1]: 0.05 keeps 5 % of the weights (95 % sparsity)"
        )


def live_counts(
    choice: Choice, density: float, allocation: str | allocations.Allocation, structure: Structure
) -> dict[nn.Parameter, Live]:
    """s for each weight: all of a dense one, and what the allocation gives to a sparse one, at least one.

    With blocks it is the nearest number of whole ones.
    """
    sparse = {w: uses for w, uses in choice.weights.items() if w not in choice.dense}
    shapes = {w: shape_by_output(w, uses) for w, uses in choice.weights.items()}
    units = _units(sparse, structure)
    counts = _allocated([shapes[w] for w in sparse], density, allocation, structure)
    lives = {}
    for (weight, uses), s in zip(sparse.items(), counts, strict=True):
        d = math.prod(shapes[weight])
        if not 1 <= s <= d:
            raise ValueError(
                f"density={density} leaves layer {uses[0].name!r} with s={s} of {d} weights: "
                f"raise density, or name the layer in keep_dense or skip"
            )
        lives[weight] = Live(structure.count(s, weight_axes(weight, uses)), units[weight])
    return lives | {w: Live(math.prod(shapes[w]), Single()) for w in choice.dense}


def _allocated(
    shapes: list[tuple[int, ...]], density: float, allocation: str | allocations.Allocation, structure: Structure
) -> list[int]:
    allocate = allocations.resolve(allocation)
    if structure.density is None or callable(allocation):
        return allocate(shapes, density) if shapes else []
    if allocation != "uniform":
        raise ValueError(
            f"allocation={allocation!r} and structure={structure} contradict: every layer has density {density:.4g}"
        )
    return [max(1, round(density * math.prod(shape))) for shape in shapes]


def _units(sparse: dict[nn.Parameter, list[Use]], structure: Structure) -> dict[nn.Parameter, Units]:
    """The structure of each weight; an error that names all layers that cannot have it."""
    units, problems = {}, {}
    for weight, uses in sparse.items():
        try:
            units[weight] = structure.units(weight_axes(weight, uses))
        except ValueError as error:
            problems[uses[0].name] = str(error)
    if problems:
        names, first = tuple(problems), next(iter(problems))
        raise ValueError(
            f"structure={structure} does not fit layer {first!r}, whose {problems[first]}: name such layers in keep_dense "
            f"or skip, here {names!r}"
        )
    return units
