"""Random numbers of an estimator: all come from one seed, and torch's global generators stay as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Inside, the generators of the CPU and of the device start from the seed; afterwards they are what they were."""
    if device.type == "cpu":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
        return
    index = device.index if device.index is not None else 0
    with torch.random.fork_rng(devices=[index], device_type=device.type):
        torch.default_generator.manual_seed(seed)
        torch.get_device_module(device).manual_seed(seed)
        yield
