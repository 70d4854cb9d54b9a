"""Whether the tensors of a model file make a valid network: all there, of the right kind, finite, with sorted supports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.nn import theta_statistics
from ssvi.nn.gates import gates
from ssvi.nn.layers import posterior_uses
from ssvi.nn.spread import SparseSpread
from ssvi.training.model_header import ModelFileError

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@torch.no_grad()
def fill(ready: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Copy the tensors of the file into the network, in place, and check what it is then."""
    state: dict[str, Tensor] = dict(ready.state_dict())
    for name, tensor in tensors.items():
        if name not in state or state[name].shape != tensor.shape:
            expected = tuple(state[name].shape) if name in state else "nothing of that name"
            raise ModelFileError(
                f"{file}: {name} has shape {tuple(tensor.shape)}, the network has {expected}: pass the one that was saved"
            )
        _check_kind(file, name, tensor, state[name])
        state[name].copy_(tensor)
    _check_complete(file, ready, state, tensors)
    _check_values(file, ready, state)


def _check_kind(file: Path, name: str, found: Tensor, own: Tensor) -> None:
    same_kind = found.dtype in FLOATS if own.dtype in FLOATS else found.dtype == own.dtype
    if not same_kind:
        raise ModelFileError(f"{file} is damaged: {name} is {found.dtype}, the network has {own.dtype}")
    if found.dtype == torch.bool and found.view(torch.uint8).gt(1).any():
        raise ModelFileError(f"{file} is damaged: {name} has values that are neither true nor false")


def _check_complete(file: Path, ready: nn.Module, state: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """A tensor that the file does not have would keep a random start. Tied ones have one memory, dense ones no index."""
    filled = {state[name].data_ptr() for name in found}
    dense = {posterior.index.data_ptr() for _, posterior in posterior_uses(ready) if posterior.s == posterior.d}
    for name, tensor in state.items():
        if tensor.numel() and tensor.data_ptr() not in filled | dense:
            raise ModelFileError(f"{file} is damaged or of another network: it lacks {name}")


def not_finite(state: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor with a NaN or an infinity, or None."""
    return next((name for name, t in state.items() if t.is_floating_point() and not t.isfinite().all()), None)


def _check_values(file: Path, ready: nn.Module, state: Mapping[str, Tensor]) -> None:
    if (wrong := not_finite(state)) is not None:
        raise ModelFileError(f"{file} is damaged: {wrong} has values that are not finite")
    for name, posterior in posterior_uses(ready):
        index = posterior.index
        ends = index[[0, -1]].tolist() if len(index) else [0, 0]
        if ends[0] < 0 or ends[1] >= posterior.d or not (index[1:] > index[:-1]).all():
            raise ModelFileError(
                f"{file} is damaged: the live weights of {name} are not increasing numbers from 0 to {posterior.d - 1}"
            )
        if not posterior.units.admits(index):
            raise ModelFileError(f"{file} is damaged: the live weights of {name} are not those of {posterior.units}")
        if isinstance(posterior, SparseSpread) and not _is_positive(posterior.sigma_init, posterior.sigma):
            raise ModelFileError(f"{file} is damaged: the deviations of {name} are not positive and finite")
    for name, gate in gates(ready):
        if not gate.sample(torch.Generator().manual_seed(0)).isfinite().all():
            raise ModelFileError(f"{file} is damaged: the gate on {name} gives numbers that are not finite")
    _check_variances(file, ready)


def _is_positive(*tensors: Tensor) -> bool:
    return all(bool((tensor > 0).all() and tensor.isfinite().all()) for tensor in tensors)


def _check_variances(file: Path, ready: nn.Module) -> None:
    running = [norm.running_var for norm in ready.modules() if isinstance(norm, _BatchNorm)]
    of_thetas = [statistics.var for statistics in theta_statistics.stored(ready).values()]
    if any(bool((variance < 0).any()) for variance in [*running, *of_thetas] if variance is not None):
        raise ModelFileError(f"{file} is damaged: BatchNorm has a negative variance")
