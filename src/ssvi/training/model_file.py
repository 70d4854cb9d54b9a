"""Model files: safetensors, no pickle. A layer is its `index`, `mu` and `rho`; the header says what network it is.

A mixture holds its networks under members.0, members.1, ...; gates lie beside the weights of their modules.

`save` and `load` take a network that `ssvi train` built (the recipe in the header rebuilds it) or the user's own, which is
given to `load` again as a plain network.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as as_safetensors
from torch import Tensor, nn

from ssvi import families
from ssvi.data.tables import Preprocessing
from ssvi.inference.predict import Mixture
from ssvi.nn.convert import GAUSSIAN
from ssvi.nn.gates import gates
from ssvi.nn.layers import layers, posterior_uses
from ssvi.nn.reasons import check_plain
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread
from ssvi.nn.theta_statistics import PAIRS
from ssvi.training.model_building import build
from ssvi.training.model_checks import fill, not_finite
from ssvi.training.model_header import (
    FORMAT,
    IN_PAIRS,
    OF_A_FAMILY,
    OF_A_TABLE,
    Header,
    ModelAbout,
    ModelFileError,
    StoredPosterior,
    header_from_text,
    header_to_json,
)
from ssvi.training.model_limits import WRONG, check_head, check_header, damage_named
from ssvi.training.sealed import EMPTY, Seal, write_whole
from ssvi.training.stored_parameters import state_key

REMEDY = "Name a file of `ssvi.save`, or a run folder of `ssvi train`"

SEAL = Seal(rb'{"__metadata__":{"ssvi":"{\"sha256\": \"', skip=8)
"""The header of a safetensors file begins so, after its length in 8 bytes."""


def save(
    net: nn.Module,
    path: str | Path,
    *,
    recipe: dict[str, Any] | None = None,
    about: ModelAbout | None = None,
    table: Preprocessing | None = None,
) -> None:
    """Write a network to `path`, whole or not at all. One with NaN is an error here, and not when it is loaded."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in _stored(net).items()}
    if (wrong := not_finite(tensors)) is not None:
        raise ModelFileError(
            f"{path} is not written: {wrong} has values that are not finite. Save an earlier state, or train again with a "
            "lower learning rate"
        )
    posteriors = {name: _stored_posterior(posterior) for name, posterior in posterior_uses(net)}
    header = Header(
        format=_format(tensors, posteriors.values(), about, table),
        recipe=recipe,
        posteriors=posteriors,
        about=about,
        members=len(net.members) if isinstance(net, Mixture) else 0,
        gates={name: type(gate).__name__ for name, gate in gates(net)},
        table=table,
    )
    text = json.dumps({"sha256": EMPTY} | header_to_json(header))
    write_whole(Path(path), SEAL.put(as_safetensors(tensors, {"ssvi": text})))


def _format(
    names: Iterable[str], posteriors: Iterable[StoredPosterior], about: ModelAbout | None, table: Preprocessing | None
) -> int:
    """The format of the first readers that understand all of it."""
    if any(name.endswith(f".{PAIRS}") for name in names):
        return IN_PAIRS
    if any(stored.family != GAUSSIAN for stored in posteriors):
        return OF_A_FAMILY
    return OF_A_TABLE if table else about.format if about else FORMAT


def load(path: str | Path, net: nn.Module | None = None) -> nn.Module:
    """The network in a model file or run folder, ready to predict, in eval mode.

    `net` is the plain network that was converted; files of `ssvi train` do not need it.
    """
    file = file_of(Path(path))
    if net is not None:
        check_plain(net, "load")
    header, tensors = read(file)
    with damage_named(file):
        ready = build(file, header, tensors, net)
        fill(ready, tensors, file)
    return ready.eval()


def read(file: Path) -> tuple[Header, dict[str, Tensor]]:
    """Header and tensors of a model file; what it says may be a stranger's, and is within the limits."""
    try:
        check_head(file)
        if not SEAL.holds_of(file):
            raise ModelFileError(f"{file} is damaged: its SHA-256 does not match. Put back an intact copy")
        with safe_open(file, framework="pt") as archive:
            metadata = archive.metadata() or {}
            if "ssvi" not in metadata:
                raise ModelFileError(f"{file} was not written by ssvi. {REMEDY}")
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, *WRONG) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{file} is damaged or not a model file: {error}. {REMEDY}") from error
    header = header_from_text(file, metadata["ssvi"])
    check_header(file, header, tensors)
    return header, tensors


def _stored(net: nn.Module) -> dict[str, Tensor]:
    """The state without what is implied: a tied posterior once, and no index where every weight lives."""
    state: dict[str, Tensor] = dict(net.state_dict())
    seen: set[nn.Module] = set()
    for name, layer in layers(net):
        for parameter, posterior in layer.posteriors.items():
            tied, seen = posterior in seen, seen | {posterior}
            for key in posterior.state_dict():
                if tied or (key == "index" and posterior.s == posterior.d):
                    del state[state_key(name, parameter, key)]
    return _once(state)


def _once(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """safetensors refuses two names for one memory (tied plain weights): keep the first; loading fills both."""
    addresses: set[tuple[int, tuple[int, ...]]] = set()
    kept = {}
    for name, tensor in state.items():
        address = (tensor.data_ptr(), tuple(tensor.shape))
        if address[0] and address in addresses:  # an empty tensor, or one of a Python backend, has the address 0
            continue
        addresses.add(address)
        kept[name] = tensor
    return kept


def _stored_posterior(posterior: SparsePosterior) -> StoredPosterior:
    s, d, structure = posterior.s, posterior.d, str(posterior.units)
    if not isinstance(posterior, SparseSpread):
        return StoredPosterior(s, d, point=True, structure=structure)
    family = str(posterior.family)
    if not families.is_known(family) or families.resolve(family) != posterior.family:
        raise ValueError(
            f"the posterior {posterior.family!r} cannot be saved: a model file holds the families of ssvi.families alone. "
            "Save the network's state_dict instead"
        )
    return StoredPosterior(s, d, posterior.prior_sigma, posterior.sigma_map, structure=structure, family=family)


def file_of(path: Path) -> Path:
    """The model file of a run folder, or the file itself; an error where there is none."""
    if not path.exists():
        raise ModelFileError(f"{path} does not exist. {REMEDY}")
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.is_file():
        raise ModelFileError(
            f"{path} has no finished model (model.safetensors): train it with `ssvi train`, "
            "or go on with `ssvi train --resume`"
        )
    return file
