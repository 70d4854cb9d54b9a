"""`ssvi doctor`: what an installation has, and what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util

import click
import torch

from ssvi.cli.tables import json_option, show, two_columns
from ssvi.data import default_folder
from ssvi.kernels import native
from ssvi.training.run_folder import machine

EXTRAS = {"svhn": "scipy", "tensorboard": "tensorboard"}
"""The extras of the package, and the module that each of them brings."""


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> None:
    """Tell what this installation has: versions, threads, kernels, and what is missing."""
    rows = findings()
    show(rows, as_json, lambda: [two_columns("ssvi doctor", rows)])


def findings() -> dict[str, str | int]:
    """Each thing that matters, in the order in which one would ask."""
    versions = {name: value for name, value in machine().items() if name != "command"}
    return versions | {
        "native kernels": f"yes, built for {native.isa()}" if native.available() else f"no: {native.why_not()}",
        "CPU capability": torch.backends.cpu.get_cpu_capability(),
        "CUDA": _cuda(),
        "data folder": str(default_folder()),
        "extras not installed": _missing_extras(),
        "safetensors": importlib.metadata.version("safetensors"),
    }


def _cuda() -> str:
    available = torch.cuda.is_available()
    return f"yes, {torch.version.cuda} (dense kernel: saves memory, not time)" if available else "no"


def _missing_extras() -> str:
    missing = [extra for extra, module in EXTRAS.items() if importlib.util.find_spec(module) is None]
    return ", ".join(f"pip install 'ssvi[{extra}]'" for extra in missing) or "none"
