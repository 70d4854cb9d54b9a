"""The memory of large tensors: no two share a place, and freed places serve tensors of other sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

from ssvi.kernels import native
from ssvi.kernels.native import arena

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

LARGE = (4, 64, 32, 32)
MB = 1 << 20


def test_tensors_do_not_overlap() -> None:
    generator, tensors = torch.Generator().manual_seed(0), {}
    for i in range(300):
        shape = (1 + int(torch.randint(8, (), generator=generator)), 32, 64, 64)
        tensors[i] = arena.empty(shape).fill_(i)
        tensors.pop(int(torch.randint(i + 1, (), generator=generator)), None)
        if len(tensors) > 20:
            tensors.pop(next(iter(tensors)))
    assert len(tensors) > 5
    assert all(bool((tensor == i).all()) for i, tensor in tensors.items())


def test_a_small_tensor_and_an_empty_one_are_left_to_torch() -> None:
    before = arena.reach()
    assert [tuple(arena.empty(shape).shape) for shape in ((1, 2, 3, 4), (0, 64, 32, 32))] == [
        (1, 2, 3, 4),
        (0, 64, 32, 32),
    ]
    assert arena.reach() == before


def test_freed_neighbours_become_the_place_of_a_larger_tensor() -> None:
    def step() -> None:
        parts = [arena.empty(LARGE) for _ in range(8)]
        del parts
        arena.empty((32, 64, 32, 32))

    step()
    before = arena.reach()
    for _ in range(5):
        step()
    assert arena.reach() == before


def test_a_tensor_is_like_any_other() -> None:
    tensor = arena.empty(LARGE)
    assert tensor.is_contiguous()
    assert tensor.data_ptr() % 64 == 0
    assert tensor.untyped_storage().nbytes() == tensor.numel() * 4
    view = tensor.fill_(1)[1]
    del tensor
    other = arena.empty(LARGE).fill_(2)
    assert bool((view == 1).all())  # a view keeps the memory
    assert bool((other == 2).all())


@pytest.mark.parametrize("shape", [LARGE, (512, 512)])
def test_gradients_are_added_in_place(shape) -> None:
    """torch does so where nothing else has the memory of a gradient."""
    tensor = arena.empty(shape)
    assert tensor.shape == shape
    assert tensor._base is None
    assert (
        torch._C._storage_Use_Count(tensor.untyped_storage()._cdata) == 2
    )  # the tensor, and the storage asked for here


def test_other_threads_may_free() -> None:
    before = arena.reach()
    for _ in range(20):
        tensors = [arena.empty(LARGE)]
        thread = threading.Thread(target=tensors.clear)
        thread.start()
        thread.join()
    assert arena.reach() <= before + 2 * MB


def test_trimming_keeps_what_is_in_use() -> None:
    first, second = arena.empty(LARGE).fill_(1), arena.empty(LARGE).fill_(2)
    del first
    arena.trim()
    assert bool((second == 2).all())
    assert bool((arena.empty(LARGE).fill_(3) == 3).all())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of addresses is one of Linux")
def test_where_addresses_are_limited_torch_serves() -> None:
    program = (
        "import resource; from ssvi.kernels.native import arena; most = resource.getrlimit(resource.RLIMIT_AS)[1]\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 45, most))\n"
        "assert bool((arena.empty((4, 64, 32, 32)).fill_(1) == 1).all()) and arena.reach() == 0"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_does_without() -> None:
    kept = arena.empty(LARGE).fill_(1)
    child = os.fork()
    if child == 0:
        tensor = arena.empty(LARGE).fill_(2)
        right = bool((kept == 1).all()) and bool((tensor == 2).all()) and arena.reach() > 0
        del kept, tensor
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bool((kept == 1).all())
