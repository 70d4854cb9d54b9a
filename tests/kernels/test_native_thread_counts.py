"""How many threads a kernel takes: by its work, and never more than torch has."""

from __future__ import annotations

import pytest
import torch

import ssvi
from ssvi.kernels import native
from ssvi.kernels.native import batchnorm, ivon, passes
from ssvi.kernels.native.threads import LEAST_WORK, threads_for


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("numbers", "products", "count"),
    [(0, 0, 1), (LEAST_WORK, 0, 1), (2 * LEAST_WORK, 0, 2), (0, 8 * 3 * LEAST_WORK, 3), (10**9, 10**9, 4)],
)
def test_as_many_as_there_is_work_for(four_threads, numbers, products, count):
    assert threads_for(numbers, products) == count


@pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
def test_a_small_layer_runs_in_the_thread_that_calls_and_a_large_one_in_several(four_threads, monkeypatch):
    counts = []

    def noted(numbers, products=0):
        counts.append(threads_for(numbers, products))
        return threads_for(numbers, products)

    for module in (passes, batchnorm, ivon):
        monkeypatch.setattr(module, "threads_for", noted)
    for batch in (1, 256):
        layer = ssvi.to_bnn(torch.nn.Conv2d(16, 16, 3, padding=1), 0.1, point=True)
        norm = torch.nn.BatchNorm2d(16)
        x = torch.randn(batch, 16, 16, 16, requires_grad=True)
        ssvi.kernels.batch_norm(norm, layer(x)).sum().backward()
    assert counts == [1] * 4 + [4] * 4
