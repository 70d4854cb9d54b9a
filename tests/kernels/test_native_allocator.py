"""The setting of malloc: large blocks come from the heap and stay there when they are freed."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from ssvi.kernels.native.allocator import tune_malloc

MB = 1 << 20


class MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h: `arena` counts the bytes of the heap, `hblks` the blocks that were mapped."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


libc = ctypes.CDLL(None)
needs_glibc = pytest.mark.skipif(not hasattr(libc, "mallinfo2"), reason="mallinfo2 needs glibc 2.33")


@needs_glibc
def test_large_blocks_come_from_the_heap_and_stay_there() -> None:
    """In a process of its own: after many tests something may lie behind the heap, which then cannot grow."""
    subprocess.run([sys.executable, __file__], check=True)


def check_large_blocks() -> None:
    """An assertion fails if a large block is mapped, or given back."""
    libc.malloc.restype, libc.mallinfo2.restype = ctypes.c_void_p, MallocInfo
    assert tune_malloc()
    before = libc.mallinfo2()
    block = ctypes.c_void_p(libc.malloc(ctypes.c_size_t(64 * MB)))
    taken = libc.mallinfo2()
    libc.free(block)
    freed = libc.mallinfo2()
    assert taken.hblks == before.hblks  # glibc would map a block of this size
    assert taken.uordblks >= before.uordblks + 64 * MB
    assert freed.uordblks < taken.uordblks
    assert freed.arena >= taken.arena  # and would give the end of the heap back


def test_another_system_is_told_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert tune_malloc() is False


if __name__ == "__main__":
    check_large_blocks()
