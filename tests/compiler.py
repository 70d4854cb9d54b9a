"""Runs the tests of the native kernels on a build by another compiler.

CXX=clang++ python tests/compiler.py [ARGUMENTS OF PYTEST, by default tests/kernels]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from ssvi.kernels.native import library

ROOT = Path(__file__).parent.parent


def main(*arguments: str) -> int:
    """Build into a folder of its own, point the loader at it, and test."""
    sys.path.insert(0, str(ROOT))
    from hatch_build import NATIVE, compile_all, compiler

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT / NATIVE / "cpp", folder / "cpp")
        if not compile_all(folder):
            sys.exit("nothing was built: name a C++ compiler in CXX (`apt install clang libomp-dev`)")
        library.DIRECTORY = folder
        library.open_library(library.candidates()[0])  # an error here says why it does not load
        print(f"{compiler()}, {library.candidates()[0].name}")
        return int(pytest.main(["-p", "no:cacheprovider", *(arguments or [str(ROOT / "tests" / "kernels")])]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
