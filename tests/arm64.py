"""Runs the tests of the native kernels on the arm64 wheel, on an emulated processor, with arm64's own Python and torch.

    python tests/arm64.py dist/ssvi-*aarch64.whl [ARGUMENTS OF PYTEST, by default tests/kernels]

For Debian and Ubuntu with qemu-user-static; it needs the network once. Debian's Python for arm64 is unpacked into
build/arm64, the packages beside it; nothing is installed on the system, and no command needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "arm64"
PYTHON = "3.11"  # that of the release of Debian below
RELEASE, MIRROR, KEYS = "bookworm", "http://deb.debian.org/debian", "/usr/share/keyrings/debian-archive-keyring.gpg"

PROCESSOR = "cortex-a72"  # plain armv8-a, as the wheel: on newer ones torch's oneDNN uses instructions that qemu lacks
TORCH = "torch==2.9.1"  # newer ones for arm64 on PyPI need the libraries of CUDA, which an emulated processor has no use for
PACKAGES = ("numpy>=1.26", "pillow", "rich", "click", "safetensors", "filelock", "fsspec", "jinja2", "markupsafe",
            "msgspec", "sympy", "networkx", "typing-extensions", "hypothesis", "pytest", "pytest-timeout")  # fmt: skip

NOT_HERE = (
    "compiled",  # needs a C++ compiler in the emulated system
    "opcheck",  # a check of torch's, which takes minutes here
    "come_from_the_heap",  # this and the next two start Python again, which the emulator cannot without a kernel setting
    "addresses_are_limited",
    "other_processes_have",
    "forked",  # forks with threads, which the emulator does not support
    "memory",  # limits the memory of the process, and with it that of the emulator
)
"""Words in the names of tests that say more about the emulator than about the kernels."""


def unpack_python() -> None:
    """Debian's Python for arm64, with the libraries that it needs, in build/arm64/root."""
    apt = FOLDER / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (apt / folder).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text(f"deb [arch=arm64 signed-by={KEYS}] {MIRROR} {RELEASE} main\n")
    settings = {
        "APT::Architecture": "arm64", "APT::Architectures": "arm64", "APT::Install-Recommends": "false",
        "Dir::State": apt, "Dir::State::status": apt / "status", "Dir::Cache": apt / "cache",
        "Dir::Etc::sourcelist": apt / "sources.list", "Dir::Etc::sourceparts": "-", "Debug::NoLocking": "true",
    }  # fmt: skip
    (apt / "apt.conf").write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    environment = os.environ | {"APT_CONFIG": str(apt / "apt.conf")}
    subprocess.run(["apt-get", "-qq", "update"], env=environment, check=True)
    names = [f"python{PYTHON}", "libstdc++6"]
    subprocess.run(["apt-get", "-qq", "-y", "--download-only", "install", *names], env=environment, check=True)
    for package in sorted((apt / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, FOLDER / "root"], check=True)


def install(target: Path, *what: str) -> None:
    """Packages for arm64, by the pip of this machine."""
    platforms = [f"--platform=manylinux_{version}_aarch64" for version in ("2_28", "2_27", "2_17")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--upgrade"]
    subprocess.run([*pip, *platforms, f"--python-version={PYTHON}", f"--target={target}", *what], check=True)


def test(*arguments: str) -> int:
    """The tests of the kernels, in the emulated Python, of the package in the wheel."""
    skip = " and ".join(f"not {word}" for word in NOT_HERE)
    path = [FOLDER / "wheel", FOLDER / "site"]
    found = {"QEMU_LD_PREFIX": str(FOLDER / "root"), "PYTHONPATH": os.pathsep.join(map(str, path))}
    environment = {"QEMU_CPU": PROCESSOR} | os.environ | found
    python = ["qemu-aarch64-static", str(FOLDER / "root" / "usr" / "bin" / f"python{PYTHON}")]
    told = "import ssvi.kernels.native as n; print(n.isa(), n.openmp.share_openmp())"
    subprocess.run([*python, "-c", told], env=environment, check=True)
    pytest = ["-m", "pytest", "-p", "no:cacheprovider", "-o", "timeout=600", "-k", skip]
    return subprocess.run([*python, *pytest, *(arguments or ["tests/kernels"])], env=environment, cwd=ROOT).returncode


def main(wheel: str, *arguments: str) -> int:
    """Whatever is missing is fetched; the wheel is unpacked anew."""
    if shutil.which("qemu-aarch64-static") is None:
        sys.exit("qemu-aarch64-static is missing: apt install qemu-user-static g++-aarch64-linux-gnu")
    if not (FOLDER / "root").exists():
        unpack_python()
    if not (FOLDER / "site" / "pytest").exists():
        install(FOLDER / "site", "--no-deps", TORCH)  # on this machine pip would take the packages of CUDA along
        install(FOLDER / "site", *PACKAGES)
    shutil.rmtree(FOLDER / "wheel", ignore_errors=True)
    install(FOLDER / "wheel", "--no-deps", wheel)
    return test(*arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)
