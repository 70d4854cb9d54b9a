"""Threads of OpenMP, threads of Python and forked processes."""

from __future__ import annotations

import multiprocessing
import threading

import pytest
import torch
from native_layers import CONV, LINEAR, images, parameters
from torch import Tensor

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import ops

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.mark.parametrize("geometry", [CONV, LINEAR], ids=["conv", "linear"])
def test_threads_change_nothing_forward_and_repeat_backward(geometry: Geometry, threads) -> None:
    mu, sigma2, index = parameters(geometry)
    x, results = images(70, geometry), {}
    for n in (1, 2, 3, 2):
        threads(n)
        torch.manual_seed(5)
        y = native.draw(x, mu, sigma2, index, geometry)
        grads = torch.autograd.grad(y.square().sum(), (x, mu, sigma2))
        if n in results:
            assert all(map(torch.equal, grads, results[n][1]))
        results[n] = (y, grads)
    assert torch.equal(results[1][0], results[2][0])
    assert torch.equal(results[1][0], results[3][0])
    assert torch.equal(results[1][1][0], results[2][1][0])
    for one, two in zip(results[1][1], results[2][1], strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-3)


def test_python_threads_do_not_disturb_each_other(threads) -> None:
    threads(2)
    mu, sigma2, index = parameters(CONV)
    inputs = [images(40).detach() for _ in range(4)]
    layer = Convolution.of(CONV)

    def work(i: int) -> Tensor:
        return ops.sparse_draw(inputs[i], mu, sigma2, index, None, torch.tensor([i]), layer)[0].detach()

    expected = [work(i) for i in range(4)]
    wrong: list[int] = []

    def repeat(i: int) -> None:
        wrong.extend(i for _ in range(20) if not torch.equal(work(i), expected[i]))

    workers = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _in_child(queue: multiprocessing.Queue, x: Tensor, mu: Tensor, index: Tensor) -> None:
    queue.put(native.fixed(x, mu, index, CONV).detach().numpy())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_works(threads) -> None:
    """After the parent has used the thread pool, which a fork does not copy."""
    threads(2)
    mu, _, index = parameters(CONV)
    x, mu = images(40).detach(), mu.detach()
    expected = native.fixed(x, mu, index, CONV)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, x, mu, index))
    child.start()
    got = torch.from_numpy(queue.get(timeout=30))
    child.join(30)
    assert torch.equal(got, expected)
