"""The fused BatchNorm2d against torch's own in float64."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.kernels import batch_norm, native
from ssvi.kernels.native.batchnorm import applied_batch_norm, fused_batch_norm, fused_batch_norm_backward, supports

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

SHAPES = [(4, 3, 8, 8), (33, 70, 1, 1), (5, 6, 4, 4), (3, 130, 1, 2), (7, 5, 5, 7), (2, 4, 33, 31), (40, 17, 2, 3)]
KINDS = {
    "affine": {},
    "plain": {"affine": False},
    "average": {"momentum": None},
    "stateless": {"track_running_stats": False},
}


@pytest.fixture(autouse=True, params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def norm_of(channels: int, kind: str) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels, **KINDS[kind])
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm


def formula(norm: nn.BatchNorm2d, x: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
    y = norm(x) if residual is None else norm(x) + residual
    return F.relu(y) if relu else y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("residual", [False, True], ids=["alone", "residual"])
@pytest.mark.parametrize("relu", [False, True], ids=["linear", "relu"])
def test_equals_torch(kind: str, shape: tuple[int, ...], residual: bool, relu: bool) -> None:
    norm = norm_of(shape[1], kind)
    exact = copy.deepcopy(norm).double()
    for _ in range(2):  # the second step meets running statistics that are no longer new
        x, r = (torch.randn(shape) * 3 + 5).requires_grad_(), torch.randn(shape).requires_grad_()
        inputs = (x, r) if residual else (x,)
        inputs64 = [v.detach().double().requires_grad_() for v in inputs]
        assert supports(norm, x)
        y = batch_norm(norm, x, residual=r if residual else None, relu=relu)
        y64 = formula(exact, inputs64[0], inputs64[1] if residual else None, relu)
        torch.testing.assert_close(y.double(), y64, rtol=1e-4, atol=1e-4)
        grad = torch.randn(shape)
        grad[y64.abs() < 1e-4] = 0  # where rounding decides on which side of zero y is
        wanted = [*inputs64, *exact.parameters()]
        got = torch.autograd.grad(y, [*inputs, *norm.parameters()], grad)
        for a, b in zip(got, torch.autograd.grad(y64, wanted, grad.double()), strict=True):
            torch.testing.assert_close(a.double(), b, rtol=1e-3, atol=1e-4 * max(1.0, b.abs().max().item()))
    for (name, a), b in zip(norm.named_buffers(), exact.buffers(), strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=1e-4, atol=1e-5, msg=name)


def test_evaluation_uses_running_statistics() -> None:
    norm = norm_of(6, "affine").eval()
    norm.running_mean.normal_()
    x, before = torch.randn(4, 6, 5, 5), norm.running_mean.clone()
    assert torch.equal(batch_norm(norm, x, relu=True), F.relu(norm(x)))
    assert torch.equal(norm.running_mean, before)


@pytest.mark.parametrize("training", [True, False])
def test_a_residual_is_broadcast(training: bool) -> None:
    norm, x, row = norm_of(6, "affine").train(training), torch.randn(4, 6, 5, 5), torch.randn(5)
    with torch.no_grad():
        torch.testing.assert_close(batch_norm(norm, x, residual=row), norm(x) + row)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("wrong", ["channels", "bfloat16", "double", "weight"])
def test_a_norm_that_does_not_fit_is_refused_by_torch(wrong: str, training: bool) -> None:
    """The kernel would read past its tensors, or take them for float32."""
    norm, x = norm_of(3 if wrong == "channels" else 6, "affine").train(training), torch.randn(4, 6, 5, 5)
    if wrong == "weight":
        norm.weight = nn.Parameter(torch.ones(3))
    if wrong in ("bfloat16", "double"):
        norm.to(getattr(torch, wrong))
    with torch.no_grad():
        assert not supports(norm, x)
        with pytest.raises(RuntimeError, match=r"should contain 6|weight to have|mixed dtype|to have type"):
            batch_norm(norm, x)


@pytest.mark.parametrize("training", [True, False])
def test_a_weight_that_is_one_number_in_memory_is_read_as_it_is(training: bool) -> None:
    norm, x = norm_of(6, "affine").train(training), torch.randn(4, 6, 5, 5)
    norm.weight = nn.Parameter(torch.tensor(2.0).expand(6))
    with torch.no_grad():
        torch.testing.assert_close(batch_norm(norm, x), norm(x))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
def test_a_residual_of_another_dtype_is_added_as_torch_adds_in_place(dtype: torch.dtype, training: bool) -> None:
    norm, x = norm_of(6, "affine").train(training), torch.randn(4, 6, 5, 5)
    residual = (10 * torch.randn(4, 6, 5, 5)).to(dtype)
    with torch.no_grad():
        torch.testing.assert_close(batch_norm(norm, x, residual=residual), norm(x).add_(residual))


def test_large_mean_loses_nothing() -> None:
    x = torch.randn(8, 3, 16, 16) + 1e4
    expected = nn.BatchNorm2d(3).double()(x.double())
    torch.testing.assert_close(batch_norm(nn.BatchNorm2d(3), x).double(), expected, rtol=0, atol=2e-3)


def test_nan_is_not_hidden_by_the_relu() -> None:
    x = torch.randn(4, 2, 3, 3)
    x[0, 0, 0, 0] = float("nan")
    y = batch_norm(nn.BatchNorm2d(2), x, relu=True)
    assert y[:, 0].isnan().all()
    assert y[:, 1].isfinite().all()


def test_one_value_per_channel_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than one value per channel"):
        batch_norm(nn.BatchNorm2d(2), torch.randn(1, 2, 1, 1))


def test_opcheck() -> None:
    x, r = torch.randn(3, 4, 5, 5, requires_grad=True), torch.randn(3, 4, 5, 5, requires_grad=True)
    weight, bias = torch.randn(4, requires_grad=True), torch.randn(4, requires_grad=True)
    torch.library.opcheck(fused_batch_norm.op, (x, r, weight, bias, 1e-5, True))
    torch.library.opcheck(fused_batch_norm.op, (x, None, None, None, 1e-5, False))
    y, mean, var = (v.detach() for v in fused_batch_norm(x, r, weight, bias, 1e-5, True))
    torch.library.opcheck(fused_batch_norm_backward.op, (y, x.detach(), y, weight.detach(), mean, var, 1e-5, True))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["affine", "plain"])
@pytest.mark.parametrize("relu", [False, True], ids=["linear", "relu"])
def test_evaluation_equals_torch(shape: tuple[int, ...], kind: str, relu: bool) -> None:
    norm = norm_of(shape[1], kind).eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.1, 2.0)
    exact, x, r = copy.deepcopy(norm).double(), torch.randn(shape), torch.randn(shape)
    for residual in (None, r):
        with torch.no_grad():
            assert supports(norm, x)
            y = batch_norm(norm, x, residual=residual, relu=relu)
            want = formula(exact, x.double(), None if residual is None else residual.double(), relu)
        torch.testing.assert_close(y.double(), want, rtol=1e-5, atol=1e-5)
    assert not supports(norm, x)
    y = batch_norm(norm, x.requires_grad_(), relu=relu)  # with gradients torch serves
    assert y.requires_grad


def test_opcheck_of_evaluation() -> None:
    statistics = (torch.randn(3), torch.rand(3) + 0.1)
    torch.library.opcheck(applied_batch_norm.op, (torch.randn(2, 3, 4, 4), None, None, None, *statistics, 1e-5, True))
