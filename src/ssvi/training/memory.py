"""How much memory this process has taken."""

from __future__ import annotations

import sys
from pathlib import Path


def peak() -> int:
    """The largest resident size of this program so far, in bytes; 0 where the system does not tell.

    On Linux not ru_maxrss: that begins with the size of the parent.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(next(lines).split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return 0
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024
