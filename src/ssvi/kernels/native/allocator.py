"""The C library's allocator: a setting that makes training faster, since freed memory stays, and how to return gaps."""

from __future__ import annotations

import ctypes
import sys

# malloc.h of glibc
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_TOP_PAD_BYTES = 64 << 20


def trim_malloc() -> None:
    """Give the gaps between blocks back to the system, where the C library can (glibc).

    After work on many large tensors that are gone: small things that were put between them would keep their pages.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(ctypes.c_size_t(0))


def tune_malloc() -> bool:
    """Keep freed memory in the process instead of returning it to the system; returns whether that was possible.

    glibc maps every block above 32 MB (one activation of a ResNet at batch 128) anew, and the operating system clears its
    pages at each use: half the time of a fast layer. The price is that the process stays at its peak size. The setting is
    for the whole process, so an application calls it and never the library itself. It exists in glibc only.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_MMAP_MAX: 0, _TRIM_THRESHOLD: -1, _TOP_PAD: _TOP_PAD_BYTES}
    return all(mallopt(ctypes.c_int(name), ctypes.c_int(value)) == 1 for name, value in settings.items())
