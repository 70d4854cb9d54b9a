"""The device of a run: the one that its recipe names, and the state of its random number generator."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from ssvi.training.run_folder import RunError


def device_of(name: str) -> torch.device:
    """The device of this process. Of several processes on one machine each has a GPU of its own: "cuda" is its own one."""
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise RunError(
            f"device={name!r} cannot be used here: {_first_line(error)}. Take one that is there: cpu"
        ) from error
    if name == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    return device


def random_state(device: torch.device) -> Tensor:
    """The state of torch's generator on a device."""
    if device.type == "cpu":
        return torch.get_rng_state()
    state: Tensor = torch.get_device_module(device).get_rng_state()
    return state


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Go on from a state of `random_state`."""
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.get_device_module(device).set_rng_state(state)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
