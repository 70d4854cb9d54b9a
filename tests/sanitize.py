"""Runs the tests of the native kernels on a build with the address and undefined-behaviour sanitizers.

python tests/sanitize.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer")

FILES = ("test_native_ops", "test_native", "test_native_autograd", "test_native_folded", "test_native_conv_norm",
         "test_native_pattern", "test_native_threads", "test_native_batchnorm", "test_native_noise",
         "test_native_select", "test_native_links", "test_native_conv_norm_pair", "test_native_blocks",
         "test_native_few", "test_native_convolution", "test_ivon")  # fmt: skip
# without test_native_library and test_native_allocator: the sanitizers have an allocator of their own


def build(directory: Path) -> None:
    """The sanitized libraries of every instruction set, from a copy of the sources."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import NATIVE, compile_all

    shutil.copytree(ROOT / NATIVE / "cpp", directory / "cpp")
    if not compile_all(directory, FLAGS):
        sys.exit("nothing was built: is there a C++ compiler?")


def run(directory: Path) -> int:
    """This script again, with the runtime of the sanitizers loaded before anything else."""
    runtime = [
        subprocess.check_output([os.environ.get("CXX", "g++"), f"-print-file-name=lib{name}.so"], text=True).strip()
        for name in ("asan", "ubsan")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(runtime),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python's own
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(ROOT / "src"),
    }
    return subprocess.run([sys.executable, __file__, str(directory)], env=environment, cwd=ROOT).returncode


def test(directory: Path) -> int:
    """The cases, with the loader pointed at the sanitized libraries."""
    import pytest

    from ssvi.kernels.native import library

    library.DIRECTORY = directory
    skip = "not opcheck and not compiled and not forked"  # of torch and the operating system, not of the kernels
    files = [str(ROOT / "tests" / "kernels" / f"{name}.py") for name in FILES]
    return pytest.main(["-p", "no:cacheprovider", "-q", "-x", "-k", skip, *files])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(test(Path(sys.argv[1])))
    with tempfile.TemporaryDirectory() as temporary:
        build(Path(temporary))
        sys.exit(run(Path(temporary)))
