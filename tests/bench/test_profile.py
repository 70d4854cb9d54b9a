"""The parts of a profiled step: whose time is whose, and that they add up."""

import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import ssvi
from ssvi.bench import profile
from ssvi.kernels import native
from ssvi.kernels.native.functions import FUNCTIONS
from ssvi.kernels.native.library import library
from ssvi.kernels.native.select import top_k

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def test_the_parts_add_up_to_the_step(monkeypatch):
    monkeypatch.setattr(profile, "CASES", ((4, 4),))
    (row,) = profile.profile(2, lambda what: None)
    assert sum(row.parts.values()) == pytest.approx(row.ms)
    assert row.parts["sparse layers, backward"] > 0
    assert row.parts["packing of x, forward"] > 0
    assert row.parts["packing of dl/dy, backward"] > 0
    assert row.parts["BatchNorm, ReLU and sums, forward"] > 0
    assert row.parts["BatchNorm, ReLU and sums, backward"] > 0
    assert row.parts[profile.OPTIMISER] > 0
    assert profile.GAMMA in row.parts
    assert "width 4, batch 4" in row.what


def test_functions_of_the_library_are_timed_inside_and_plain_again_afterwards(monkeypatch):
    before = {name: getattr(library(), name) for name in FUNCTIONS}
    clock = iter([1.0, 3.5])
    monkeypatch.setattr(profile.time, "perf_counter", lambda: next(clock))
    with profile.timed_library() as parts:
        assert top_k(torch.tensor([1.0, 3.0, 2.0]), 1).tolist() == [1]
    assert parts == {"other native kernels": 2.5}
    assert all(getattr(library(), name) is function for name, function in before.items())


def test_packing_is_timed_only_where_it_is_asked_for():
    conv = ssvi.to_bnn(nn.Conv2d(8, 8, 3), 0.1, point=True)
    x = torch.randn(4, 8, 9, 9)
    library().ssvi_packing_time(False)
    conv(x).sum().backward()
    assert library().ssvi_packing_time(True) == 0
    start = time.perf_counter_ns()
    conv(x).sum().backward()
    assert 0 < library().ssvi_packing_time(False) < time.perf_counter_ns() - start


def test_torchs_operators_by_part():
    events = {
        "aten::mkldnn_convolution": 5.0,
        "aten::convolution_backward": 3.0,
        "aten::nll_loss_forward": 1.0,
        "aten::add_": 2.0,
        "aten::empty": 0.5,
        "ssvi::sparse_fixed": 99.0,  # timed at the border of the library
        "autograd::engine::evaluate_function: X": 99.0,  # the rest
    }
    averages = [SimpleNamespace(key=key, self_cpu_time_total=1e6 * seconds) for key, seconds in events.items()]
    assert profile.torch_parts(averages) == pytest.approx(
        {"loss and dense layers by torch": 9.0, "pooling, ReLU and sums by torch": 2.0, profile.OTHER: 0.5}
    )
