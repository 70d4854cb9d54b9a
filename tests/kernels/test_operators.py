"""The shorter way around torch's dispatcher: the same numbers, and operators where somebody looks at them."""

import gc

import pytest
import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.operators import operator


@operator("ssvi_test::scaled")
def scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


@scaled.register_fake
def _(x: Tensor, factor: float) -> Tensor:
    return torch.empty_like(x)


def _save(ctx, inputs, output):
    x, ctx.factor = inputs
    ctx.save_for_backward(x)


def _backward(ctx, grad):
    assert ctx.needs_input_grad == (True, False)
    assert len(ctx.saved_tensors) == 1
    return grad * ctx.factor, None


scaled.register_autograd(_backward, setup_context=_save)


class Seen(TorchDispatchMode):
    """The names of the operators that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Tagged(Tensor):
    """A subclass without behaviour of its own."""


def test_both_ways_have_the_same_value_and_gradient():
    x = torch.randn(5, requires_grad=True)
    for call in (scaled, scaled.op):
        (grad,) = torch.autograd.grad(call(x, 3.0).sum(), x)
        torch.testing.assert_close(grad, torch.full((5,), 3.0))
    torch.testing.assert_close(scaled(x, 2.0), scaled.op(x, 2.0))
    assert not scaled(x.detach(), 2.0).requires_grad
    with torch.no_grad():
        assert not scaled(x, 2.0).requires_grad


def test_nobody_looks_so_no_operator_is_called(monkeypatch):
    monkeypatch.setattr(scaled, "op", None)
    assert scaled(torch.ones(2, requires_grad=True), 2.0).tolist() == [2.0, 2.0]


def test_a_dispatch_mode_sees_the_operator():
    with Seen() as seen:
        scaled(torch.ones(2), 2.0)
    assert "ssvi_test.scaled.default" in seen.names


def test_fake_tensors_and_subclasses_go_to_the_operator(monkeypatch):
    with FakeTensorMode():
        assert scaled(torch.ones(2, 3), 2.0).shape == (2, 3)
    called = []
    monkeypatch.setattr(scaled, "op", lambda *arguments: called.append(arguments))
    scaled(torch.ones(2).as_subclass(Tagged), 2.0)
    assert len(called) == 1


def test_a_profiler_sees_the_operator():
    with torch.profiler.profile() as profile:
        scaled(torch.ones(2), 2.0)
    assert "ssvi_test::scaled" in {event.key for event in profile.key_averages()}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_trace_has_the_operator():
    assert "ssvi_test::scaled" in str(torch.jit.trace(lambda x: scaled(x, 2.0), torch.ones(2)).graph)


@pytest.mark.parametrize("change", ["version", "memory"])
def test_what_is_known_of_an_index_holds_until_it_changes(change):
    known, index = ByTensor[int](), torch.arange(3)
    assert [known.of(index, lambda: 1), known.of(index, lambda: 2)] == [1, 1]
    if change == "version":
        index.add_(1)
    else:
        index.data = torch.arange(4)
    assert known.of(index, lambda: 3) == 3
    assert known.of(torch.arange(3), lambda: 4) == 4, "another index with the same positions"


def test_what_is_known_of_a_dead_index_is_forgotten():
    known = ByTensor[int]()
    indices = [torch.arange(n) for n in range(3)]
    for index in indices:
        known.of(index, lambda: 0)
    assert len(known) == 3
    del index, indices[0]
    gc.collect()
    assert len(known) == 2
