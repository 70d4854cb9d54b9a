"""From the header of a model file to the network that it describes, with values still to be filled in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ssvi import structures
from ssvi.inference.predict import Mixture
from ssvi.nn import theta_statistics
from ssvi.nn.convert import to_bnn
from ssvi.nn.gate_kinds import LogNormalGate, NormalGate
from ssvi.nn.gates import put
from ssvi.nn.layers import spread_posteriors
from ssvi.training.model_header import Header, ModelFileError, StoredPosterior
from ssvi.training.model_limits import check_weights
from ssvi.training.networks import network_for_images, network_for_rows
from ssvi.training.stored_parameters import random_parameters
from ssvi.training.trusted_code import check_trusted, code_in

_GATES = {gate.__name__: gate for gate in (LogNormalGate, NormalGate)}


def build(file: Path, header: Header, tensors: dict[str, Tensor], net: nn.Module | None) -> nn.Module:
    """The network that the header describes, with values still to be filled in."""
    plain = net if net is not None else _rebuild(file, header, tensors)
    if header.members:
        plain = Mixture(copy.deepcopy(plain) for _ in range(header.members))
    ready = _with_posteriors(plain, header.posteriors, tensors)
    for name, kind in header.gates.items():
        put(ready.get_submodule(name), _GATES[kind](tensors[f"{name}.gate.alive"].numel()))
    theta_statistics.make_room(ready, tensors)
    return ready


def _rebuild(file: Path, header: Header, tensors: dict[str, Tensor]) -> nn.Module:
    """The plain network of the recipe, for images or rows like those of the training."""
    make = _maker(header)
    if make is None:
        raise ModelFileError(f"{file} holds a network of your own: pass it as load(path, net=your_plain_network)")
    own = code_in({"model": header.recipe["model"]} if header.recipe else {})
    check_trusted(file, own)
    if not own:  # the user's own code need not know torch's device "meta"
        check_weights(file, header, tensors, make)
    return make()


def _maker(header: Header) -> Callable[[], nn.Module] | None:
    about, recipe, table = header.about, header.recipe, header.table
    if recipe is not None and table is not None:
        return lambda: network_for_rows(recipe, table)
    if recipe is None or about is None:
        return None
    return lambda: network_for_images(recipe, len(about.classes), about.shape)


def _with_posteriors(plain: nn.Module, posteriors: dict[str, StoredPosterior], tensors: dict[str, Tensor]) -> nn.Module:
    """Convert with the live weights of the file, layer by layer."""
    if not posteriors:
        return plain
    random = random_parameters(plain, posteriors)
    dense = tuple(name for name, stored in posteriors.items() if stored.s == stored.d)
    counts = [posteriors[u].s for u, key in random.keys.items() if u not in dense and key in tensors]
    structure = structures.joint([stored.structure for stored in posteriors.values() if stored.structure])
    bnn = to_bnn(
        plain, structure.density or 1.0, skip=random.skipped, keep_dense=dense, layers=random.own, structure=structure,
        allocation=lambda shapes, density: counts, seed=0, **_kind(next(iter(posteriors.values()))),
    )  # fmt: skip
    for name, posterior in spread_posteriors(bnn).items():
        posterior.prior_sigma = posteriors[name].prior_sigma or posterior.prior_sigma  # each layer has its own
    return bnn


def _kind(stored: StoredPosterior) -> dict[str, Any]:
    """The arguments of `to_bnn` that make such a posterior."""
    if stored.point:
        return {"point": True}
    return {"sigma_map": stored.sigma_map, "posterior": stored.family}
