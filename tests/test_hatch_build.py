"""How the kernels are compiled: which compiler, for which machine, and what happens where it fails."""

import importlib.util
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def hatch_build():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Makes a compiler that says what it is, and writes an empty file for each library."""

    def make(machine: str, version: str = "g++ 12", code: int = 0) -> Path:
        script = tmp_path / "cxx"
        script.write_text(
            f'#!/bin/sh\ncase "$1" in -dumpmachine) echo {machine}; exit;; --version) echo {version}; exit;; esac\n'
            f'echo "$@" >> {tmp_path}/calls\nfor last; do :; done\n'
            f'case "$*" in *-shared*) touch "$last";; esac\necho "no such thing" >&2; exit {code}\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        return tmp_path / "calls"

    return make


@pytest.fixture
def native(tmp_path):
    (tmp_path / "native" / "cpp").mkdir(parents=True)
    (tmp_path / "native" / "cpp" / "some.cpp").touch()
    return tmp_path / "native"


@pytest.mark.parametrize(
    ("triple", "names"),
    [
        ("x86_64-linux-gnu", {"kernels_x86_64", "kernels_x86_64_v3", "kernels_x86_64_v4"}),
        ("aarch64-linux-gnu", {"kernels_arm64"}),
        ("arm64-apple-darwin24", {"kernels_arm64"}),
        ("riscv64-linux-gnu", set()),
    ],
)
def test_the_compiler_decides_the_machine(hatch_build, compiler, native, triple, names):
    compiler(triple)
    assert {path.stem for path in hatch_build.compile_all(native)} == names
    assert {path.stem for path in native.glob("*.so")} == names


@pytest.mark.parametrize(("version", "linked"), [("g++ 12", False), ("Debian clang version 14", True)])
def test_only_clang_is_linked_to_a_runtime_of_its_own(hatch_build, compiler, native, version, linked):
    calls = compiler("aarch64-linux-gnu", version)
    hatch_build.compile_all(native)
    compiling, linking = calls.read_text().splitlines()
    assert "-fopenmp" in compiling
    assert ("-fopenmp" in linking) == linked


def test_a_failure_says_what_failed_and_leaves_nothing(hatch_build, compiler, native, capsys):
    compiler("aarch64-linux-gnu", code=1)
    assert hatch_build.compile_all(native) == []
    printed = capsys.readouterr().out
    assert "no such thing" in printed
    assert "ssvi: no kernels for arm64" in printed
    assert list(native.glob("*.so")) == []


def test_a_compiler_that_is_not_there_builds_nothing(hatch_build, native, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    assert hatch_build.compile_all(native) == []


def test_a_cross_compiler_makes_a_wheel_for_its_machine(hatch_build, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "linux-x86_64")
    assert hatch_build.wheel_platform("x86_64") == "linux_x86_64"
    assert hatch_build.wheel_platform("aarch64") == "linux_aarch64"
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "macosx-11.0-arm64")
    assert hatch_build.wheel_platform("aarch64") == "macosx_11_0_arm64"
