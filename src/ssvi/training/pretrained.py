"""A network that starts from the weights of a trained one (`pretrained` in a recipe)."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ssvi.errors import UserError
from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.deterministic import mean
from ssvi.training import model_file
from ssvi.training.model_header import ModelFileError
from ssvi.training.recipe import RecipeError

HALF = 0.5
"""Of a file that fits less of the network, hardly anything but biases would be taken."""


def start_from(net: nn.Module, path: str) -> nn.Module:
    """The same network with the weights of a file: a run folder, a model file of ssvi, .safetensors, or .pt with a state.

    The names must be those of the network. A tensor of another shape (the last layer, where the classes are others) is
    left as it is, and a warning names it.
    """
    found, state = _weights(Path(path)), net.state_dict()
    if missing := sorted(state.keys() ^ found.keys()):
        raise RecipeError(
            f"pretrained={path!r} is of another network: {_some(missing)} in one of them only; take its model and width"
        )
    fitting = {name: tensor for name, tensor in found.items() if tensor.shape == state[name].shape}
    taken = sum(p.numel() for name, p in net.named_parameters() if name in fitting)
    share = taken / sum(p.numel() for p in net.parameters())
    if share < HALF:
        raise RecipeError(f"pretrained={path!r} fits {share:.0%} of the parameters by their shapes; take its width")
    if left := [_difference(name, found[name], state[name]) for name in found if name not in fitting]:
        warnings.warn(f"pretrained={path!r}: these start fresh, for their shapes differ: {_some(left)}", stacklevel=2)
    net.load_state_dict(fitting, strict=False)
    return net


def _weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, by name; of a Bayesian network its means."""
    try:
        if path.is_dir() or path.suffix == ".safetensors":
            return _from_safetensors(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file gives errors of many kinds, and torch advises to load it unsafely
        why = error if isinstance(error, (OSError, UserError)) else "it is damaged, or holds more than tensors"
        raise RecipeError(
            f"pretrained={str(path)!r} cannot be read: {why}. Take a run folder, a model file, .safetensors, or .pt with a "
            "state_dict"
        ) from error
    state = state.get("state_dict", state) if isinstance(state, dict) else state
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise RecipeError(f"pretrained={str(path)!r} is no state: save one with torch.save(net.state_dict(), ...)")
    return state


def _from_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        net = model_file.load(path)
    except ModelFileError:
        if path.is_dir():
            raise
        return load_file(path)  # not one of ours
    bayesian = any(isinstance(module, BayesLayer) for module in net.modules())
    return dict((mean(net, dense=True) if bayesian else net).state_dict())


def _difference(name: str, found: Tensor, own: Tensor) -> str:
    return f"{name} ({tuple(found.shape)} in the file, {tuple(own.shape)} in the network)"


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f", and {len(names) - 4} more" if len(names) > 4 else "")
