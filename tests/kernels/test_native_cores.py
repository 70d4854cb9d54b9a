"""Fewer threads where other processes have cores: which, and that nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import ssvi
from ssvi.kernels import native
from ssvi.kernels.native.threads import at_a_time, working
from ssvi.nn.models import resnet18

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

PARTS = 3


def _trained(method: str) -> list[Tensor]:
    """The parameters of a small network after two steps."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(resnet18(width=8), 0.2, seed=0)
    x, y = torch.randn(24, 3, 16, 16), torch.randint(0, 10, (24,))
    if method == "ivon":
        natural = ssvi.IVON(bnn, train_size=100)
        for _ in range(2):
            with natural.sampled():
                F.cross_entropy(bnn(x), y).backward()
            natural.step()
    else:
        elbo, optimizer = ssvi.ELBO(bnn, train_size=100), torch.optim.SGD(bnn.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x), y)).backward()
            optimizer.step()
    return [parameter.detach().clone() for parameter in bnn.parameters()]


@pytest.mark.parametrize("method", ["ivon", "local reparameterisation"])
def test_training_is_the_same_to_the_bit_however_many_threads_do_the_parts(
    method: str, threads: Callable[[int], None]
) -> None:
    threads(PARTS)
    expected = _trained(method)
    for working_now in (1, 2):
        with at_a_time(working_now):
            assert all(map(torch.equal, _trained(method), expected))


def test_a_limit_holds_and_ends() -> None:
    with at_a_time(2):
        assert [working(parts) for parts in (1, 2, 8)] == [1, 2, 2]
    with at_a_time(1000):
        assert working(8) == 8
    assert working(1) == 1


@pytest.fixture
def no_free_core() -> Iterator[None]:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    if len(cores) < 2 or not Path("/proc/stat").exists():
        pytest.skip("one core, or a system that does not tell what its cores do")
    program = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", program, str(core)]) for core in cores]
    yield
    for other in others:
        other.kill()
        other.wait()


def test_where_other_processes_have_all_cores_one_thread_works(no_free_core: None) -> None:
    deadline = time.monotonic() + 30
    while working(8) > 1:
        assert time.monotonic() < deadline, f"{working(8)} threads work after 30 seconds"
        time.sleep(0.3)
