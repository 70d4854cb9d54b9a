"""Failures inside the compiled library are exceptions of Python, and leave the kernels as they were."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import library
from ssvi.kernels.native.select import top_k

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
needs_linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read in /proc")

MB = 1 << 20


def far_apart(pixels: int) -> Geometry:
    """A 3x3 convolution whose taps lie `pixels` apart: small tensors, but a padded copy of pixels^2 values."""
    return Geometry((3, 2, 3, 3), (1, 1), (pixels, pixels), (pixels, pixels))


def arguments() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, mu, sigma^2 and index: every third weight."""
    index = torch.arange(0, 54, 3, dtype=torch.int32)
    return torch.randn(1, 2, 8, 8), torch.randn(18), torch.rand(18) + 0.1, index


@contextmanager
def limited_memory(above: int) -> Iterator[None]:
    """This process may grow by so many bytes and no more."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + above, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@needs_linux
@pytest.mark.parametrize("count", [1, 2], ids=["one thread", "two threads"])
def test_no_memory_forward_is_an_error_and_the_next_call_works(count: int, threads) -> None:
    threads(count)
    x, mu, sigma2, index = arguments()
    near, far = far_apart(1), far_apart(10_000)
    expected = native.fixed(x, mu, index, near)
    with limited_memory(300 * MB):
        with pytest.raises(MemoryError, match=r"ssvi_forward: no memory .* smaller batch or fewer threads"):
            native.fixed(x, mu, index, far)
        with pytest.raises(MemoryError, match="ssvi_forward"):
            native.draw(x, mu, sigma2, index, far)
        assert torch.equal(native.fixed(x, mu, index, near), expected)


@needs_linux
@pytest.mark.parametrize("count", [1, 2], ids=["one thread", "two threads"])
def test_no_memory_backward_is_an_error_and_the_next_call_works(count: int, threads) -> None:
    threads(count)
    x, mu, _, index = arguments()
    near, far = far_apart(1), far_apart(10_000)
    y, mu = native.fixed(x, mu, index, near), mu.requires_grad_()
    with limited_memory(300 * MB):
        with pytest.raises(MemoryError, match="ssvi_backward"):
            torch.ops.ssvi.sparse_fixed_backward(torch.ones_like(y), x, mu, index, Convolution.of(far), True)
        small = native.fixed(x, mu, index, near)
        (grad,) = torch.autograd.grad(small.sum(), mu)
    (expected,) = torch.autograd.grad(dense.fixed(x, mu, index, near).sum(), mu)
    torch.testing.assert_close(grad, expected)


@pytest.mark.parametrize("pixels", [2**16, 2**28, 2**40])
def test_offsets_beyond_32_bits_are_an_error(pixels: int) -> None:
    x, mu, _, index = arguments()
    with pytest.raises(OverflowError, match=r"ssvi_pattern: .* more than 2\^31 values; .*use\(.dense.\)"):
        native.fixed(x, mu, index, far_apart(pixels))


@pytest.mark.parametrize(("status", "error"), [(1, MemoryError), (2, OverflowError), (3, RuntimeError)])
def test_every_status_is_an_error(status: int, error: type[Exception]) -> None:
    function = library.library().ssvi_top_k
    with pytest.raises(error, match="ssvi_top_k"):
        function.errcheck(status, function, ())
    assert top_k(torch.tensor([1.0, 3.0, 2.0]), 2).tolist() == [1, 2]  # zero is none


def test_a_library_of_another_source_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_INTERFACE", -1)
    loaded, reason = library._load.__wrapped__()
    assert loaded is None
    assert "does not load: it was built from another version of the source: install a C++ compiler" in reason


@pytest.mark.skipif(sys.platform != "linux", reason="versions of symbols are those of Linux")
def test_the_libraries_load_on_the_oldest_systems_that_the_wheels_promise() -> None:
    """glibc 2.27 and the libstdc++ of its time (GCC 8): one copy of a vector asked for that of GCC 11."""
    for path in library.candidates():
        symbols = path.read_bytes()
        for name, newest in ((rb"GLIBC_2\.(\d+)", 27), (rb"GLIBCXX_3\.4\.(\d+)", 25)):
            assert max(map(int, re.findall(name, symbols)), default=0) <= newest, f"{path.name}: {name.decode()}"
