"""One OpenMP runtime for torch and for the kernels."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch

NAMES = ("libgomp", "libiomp5")
"""gcc's runtime, and Intel's, which has gcc's functions too."""


@cache
def share_openmp() -> Path | None:
    """Make the functions of torch's OpenMP runtime visible to libraries that are loaded after this; returns its file.

    Our libraries are linked to no runtime. A name that they could be linked to is not at hand: the file is libgomp.so.1
    in some packages of torch, libgomp-947d5fa1.so.1.0.0 in others, and a second runtime would have threads of its own,
    which fight with torch's for the cores.
    """
    file = next(iter(_mapped()), None)
    if file is not None:
        ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)  # loaded already: only its visibility changes
    return file


def _mapped() -> list[Path]:
    """The OpenMP runtimes that this process has loaded, torch's own first; none where the system does not tell."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    files = {Path(words[5]) for line in maps.read_text().splitlines() if len(words := line.split(maxsplit=5)) == 6}
    runtimes = sorted(file for file in files if file.name.startswith(NAMES))
    return sorted(runtimes, key=lambda file: not _is_of_torch(file))


def _is_of_torch(file: Path) -> bool:
    """Whether a library came with torch: in its package, or in the folder beside it that wheels have."""
    package = Path(torch.__file__).parent
    return file.is_relative_to(package) or file.is_relative_to(package.with_name("torch.libs"))
