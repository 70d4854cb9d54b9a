"""Compile the CPU kernels into the package, once per instruction set, with the system's compiler.

Without a compiler the build succeeds with a warning: the package then has no native kernels and the dense one serves.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # imported for `compile_all` alone, outside a build
    BuildHookInterface = object  # type: ignore[assignment, misc]

NATIVE = Path("src/ssvi/kernels/native")

TARGETS = {
    "x86_64": {"x86_64_v4": "-march=x86-64-v4", "x86_64_v3": "-march=x86-64-v3", "x86_64": "-march=x86-64"},
    "aarch64": {"arm64": "-march=armv8-a"},
}

# -ffast-math would change the rounding mode of the whole process when the library is loaded; these do not.
FLAGS = ["-std=c++17", "-fPIC", "-shared", "-fopenmp", "-fvisibility=hidden", "-Wall", "-Wextra"]
MATH = ["-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]


def compiler() -> list[str] | None:
    """The C++ compiler: $CXX, or the first of the usual names; None where there is none."""
    given = os.environ.get("CXX")
    candidates = [shlex.split(given)] if given else [["g++"], ["clang++"], ["c++"]]
    return next((command for command in candidates if shutil.which(command[0])), None)


def compile_all(native: Path, extra: Sequence[str] = ("-O3",)) -> list[Path]:
    """Build every library that this machine's compiler can build into the folder `native`; returns their paths."""
    cxx = compiler()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    if cxx is None or machine not in TARGETS:
        return []
    sources = sorted(str(path) for path in (native / "cpp").glob("*.cpp"))

    def compile_one(name: str, march: str) -> Path | None:
        library = native / f"kernels_{name}.so"
        new = library.with_suffix(".new")  # a running process may have the old one loaded
        command = [*cxx, *FLAGS, *MATH, march, *extra, *sources, "-o", str(new)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            print(f"ssvi: no kernels for {name}: {shlex.join(command)} failed:\n{result.stderr}")
            return None
        return new.replace(library)

    with ThreadPoolExecutor() as pool:
        return [path for path in pool.map(compile_one, *zip(*TARGETS[machine].items(), strict=True)) if path]


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the libraries to a wheel, or leaves them in the source tree for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        if self.target_name != "wheel":
            return
        if not compile_all(Path(self.root) / NATIVE):
            self.app.display_warning("ssvi: no C++ compiler found; installing without the native CPU kernels")
            return
        build_data["artifacts"].append(f"{NATIVE}/*.so")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


if __name__ == "__main__":
    built = compile_all(Path(__file__).parent / NATIVE)
    print("\n".join(str(path) for path in built) or "nothing was built")
