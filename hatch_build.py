"""Compile the CPU kernels into the package, once per instruction set, with the system's compiler or that of `$CXX`.

Without a compiler the build succeeds with a warning: the package then has no native kernels and the dense one serves. A
cross-compiler makes a wheel for its own machine: `CXX=aarch64-linux-gnu-g++ python -m build`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
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

# Sized deallocation would ask for a newer libstdc++ than the oldest systems have.
FLAGS = ["-std=c++17", "-fPIC", "-fopenmp", "-fvisibility=hidden", "-fno-sized-deallocation", "-Wall", "-Wextra"]
# -ffast-math would change the rounding mode of the whole process when the library is loaded; these do not.
MATH = ["-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]


def compiler() -> list[str] | None:
    """The C++ compiler: $CXX, or the first of the usual names; None where there is none."""
    given = os.environ.get("CXX")
    candidates = [shlex.split(given)] if given else [["g++"], ["clang++"], ["c++"]]
    return next((command for command in candidates if shutil.which(command[0])), None)


def machine_of(cxx: Sequence[str]) -> str:
    """The machine that a compiler compiles for: "x86_64", "aarch64", ..."""
    target = subprocess.run([*cxx, "-dumpmachine"], capture_output=True, text=True).stdout
    machine = target.split("-")[0].strip()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


def openmp_of(cxx: Sequence[str]) -> list[str]:
    """What a library is linked to for OpenMP.

    Nothing with gcc: torch brings a libgomp, and `ssvi.kernels.native.openmp` gives it to our library, so that a process
    has one pool of threads. clang's code needs clang's own runtime, libomp.
    """
    version = subprocess.run([*cxx, "--version"], capture_output=True, text=True).stdout
    return ["-fopenmp"] if "clang" in version else []


def compile_all(native: Path, extra: Sequence[str] = ("-O3",)) -> list[Path]:
    """Build every library that the compiler can build into the folder `native`; returns their paths."""
    cxx = compiler()
    if cxx is None or (machine := machine_of(cxx)) not in TARGETS:
        return []
    sources = sorted(str(path.resolve()) for path in (native / "cpp").glob("*.cpp"))

    def compile_one(name: str, march: str) -> Path | None:
        library = (native / f"kernels_{name}.so").resolve()
        new = library.with_suffix(".new")  # a running process may have the old one loaded
        with TemporaryDirectory() as folder:
            objects = [f"{Path(source).stem}.o" for source in sources]
            compiling = [*cxx, *FLAGS, *MATH, march, *extra, "-c", *sources]
            linking = [*cxx, "-shared", *extra, *openmp_of(cxx), *objects, "-o", str(new)]
            failed = next((command for command in (compiling, linking) if not _runs(command, folder)), None)
        if failed:
            print(f"ssvi: no kernels for {name}: {shlex.join(failed)} failed")
            return None
        return new.replace(library)

    with ThreadPoolExecutor() as pool:
        return [path for path in pool.map(compile_one, *zip(*TARGETS[machine].items(), strict=True)) if path]


def _runs(command: Sequence[str], folder: str) -> bool:
    """Run a command in a folder; what it complains about is printed where it fails."""
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if result.returncode:
        print(result.stderr)
    return result.returncode == 0


def wheel_platform(machine: str) -> str:
    """The platform in the name of a wheel, for the machine that was compiled for: that of this system, or a Linux one."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return here if here.endswith((machine, "arm64", "amd64", "universal2")) else f"linux_{machine}"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the libraries to a wheel, or leaves them in the source tree for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files."""
        if self.target_name != "wheel":
            return
        built = compile_all(Path(self.root) / NATIVE)
        cxx = compiler()
        if not built or cxx is None:
            self.app.display_warning("ssvi: no C++ compiler found; installing without the native CPU kernels")
            return
        build_data["artifacts"] += [str(NATIVE / path.name) for path in built]  # and none of an earlier build
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{wheel_platform(machine_of(cxx))}"


if __name__ == "__main__":
    built = compile_all(Path(__file__).parent / NATIVE)
    print("\n".join(str(path) for path in built) or "nothing was built")
