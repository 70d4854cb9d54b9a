"""How much memory this process may still take, asked before a large tensor is made: the system would kill it without a word.

The smallest of what the machine, the control group (containers) and the limit of the process (`ulimit -v`) leave.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

GB = 1e9


def free_bytes() -> float:
    """Bytes that may still be taken; infinity where nothing is known."""
    return min(_of_machine(), _of_control_group(), _of_process())


def in_gigabytes(count: float) -> str:
    """A number of bytes for people."""
    return f"{count / GB:,.1f} GB"


def _of_machine() -> float:
    """What Linux says is available; elsewhere all the memory that there is."""
    available = _kilobytes(Path("/proc/meminfo"), "MemAvailable:")
    if available is not None:
        return available
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return math.inf


def _of_control_group(folder: Path = Path("/sys/fs/cgroup")) -> float:
    try:
        most = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return math.inf
    return math.inf if most == "max" else max(0, int(most) - used)


def _of_process() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return math.inf
    return max(0.0, most - (_kilobytes(Path("/proc/self/status"), "VmSize:") or 0.0))


def _kilobytes(file: Path, name: str) -> float | None:
    """The number of kilobytes behind this name, in bytes; None where there is no such line."""
    try:
        lines = [line for line in file.read_text().splitlines() if line.startswith(name)]
    except OSError:
        return None
    return int(lines[0].split()[1]) * 1024.0 if lines else None
