"""What an installation has, and what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

import torch

from ssvi.data import default_folder
from ssvi.kernels import native
from ssvi.training.run_folder import machine

EXTRAS = {"svhn": "scipy", "tensorboard": "tensorboard"}


def findings() -> dict[str, Any]:
    """Each thing that matters, in the order in which one would ask."""
    found = {k: v for k, v in machine().items() if k != "command"}
    native_kernels = f"yes, built for {native.isa()}" if native.available() else f"no: {native.why_not()}"
    missing = [extra for extra, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    return found | {
        "native kernels": native_kernels,
        "CPU capability": torch.backends.cpu.get_cpu_capability(),
        "CUDA": f"yes, {torch.version.cuda} (dense kernel: saves memory, not time)"
        if torch.cuda.is_available()
        else "no",
        "data folder": str(default_folder()),
        "extras not installed": ", ".join(f"pip install 'ssvi[{extra}]'" for extra in missing) or "none",
        "safetensors": importlib.metadata.version("safetensors"),
    }
