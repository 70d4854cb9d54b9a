"""The programs in experiments/, as modules."""

import importlib.util
from pathlib import Path
from types import ModuleType

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"


def load_program(name: str) -> ModuleType:
    """The program of this name, loaded anew: its commands, functions and settings."""
    spec = importlib.util.spec_from_file_location(name, EXPERIMENTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
