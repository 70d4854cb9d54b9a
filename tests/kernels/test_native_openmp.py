"""One OpenMP runtime in the process: torch's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ssvi.kernels import native
from ssvi.kernels.native import library, openmp

pytestmark = [
    pytest.mark.skipif(not native.available(), reason=str(native.why_not())),
    pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the map of a process is read in /proc"),
]


def test_the_runtime_is_the_one_that_torch_has_loaded() -> None:
    file = openmp.share_openmp()
    assert file is not None
    assert str(file) in Path("/proc/self/maps").read_text()
    if torch_own := [*Path(torch.__file__).parent.glob("lib/libgomp*")]:
        assert file in torch_own


def test_the_libraries_name_no_runtime_of_gcc() -> None:
    """A name in the file would load that file, beside torch's."""
    for path in library.candidates():
        assert b"libgomp.so" not in path.read_bytes()


def test_what_came_with_torch_goes_before_what_came_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(torch.__file__).parent
    own = package.with_name("torch.libs") / "libgomp-947d5fa1.so.1.0.0"
    others = [package.with_name("scikit_learn.libs") / "libgomp-a34b3233.so.1", Path("/usr/lib/libgomp.so.1")]
    for order in ([own, *others], [*others, own]):
        lines = [f"7f00-7f01 r--p 00000000 08:01 42    {file}\n" for file in order]
        monkeypatch.setattr(
            Path, "read_text", lambda self, lines=lines: "".join([*lines, "7f02-7f03 rw-p 0 00:00 0\n"])
        )
        assert openmp._mapped()[0] == own
        monkeypatch.undo()
