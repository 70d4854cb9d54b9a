"""bfloat16 under autocast: what a layer with a norm leaves for the backward pass is rounded, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import links
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.conv_norm import sparse_norm
from ssvi.kernels.native.passes import forward
from ssvi.nn import conv_norm as of_layers
from ssvi.nn.models import BasicBlock

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

HALF = torch.autocast("cpu", torch.bfloat16)
LAYERS = {
    "plain": (nn.Conv2d(4, 6, 3, padding=1), (5, 4, 9, 8)),
    "wide rows": (nn.Conv2d(3, 5, 3, padding=1), (3, 3, 6, 32)),
    "strided": (nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), (17, 4, 16, 16)),
    "uneven": (nn.Conv2d(6, 9, (2, 3), stride=(3, 1), padding=(3, 0), dilation=(1, 2), groups=3), (4, 6, 11, 7)),
    "tiny planes": (nn.Conv2d(5, 7, 3, padding=1, bias=False), (35, 5, 2, 2)),
    "one row": (nn.Conv2d(2, 20, (1, 3), padding=(0, 1)), (19, 2, 1, 5)),
    "past the caches": (nn.Conv2d(4, 64, 3, padding=1), (33, 4, 32, 32)),
}


def whole_numbers(*shape: int) -> Tensor:
    """A few of them times a few others, summed over a small kernel, stay below 256: bfloat16 holds them exactly."""
    return torch.randint(-2, 3, shape).float()


def problem(name: str) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Convolution]:
    """x, theta, its index, a bias and the layer, in whole numbers."""
    conv, shape = LAYERS[name]
    geometry = Geometry(tuple(conv.weight.shape), conv.stride, conv.padding, conv.dilation, conv.groups)
    index = torch.randperm(geometry.d)[: max(1, geometry.d // 3)].sort().values.int()
    bias = None if conv.bias is None else whole_numbers(conv.out_channels)
    return whole_numbers(*shape), whole_numbers(len(index)), index, bias, Convolution.of(geometry)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
def test_the_output_is_rounded_where_it_is_written_and_its_moments_are_not(name, count, threads) -> None:
    threads(count)
    x, _, index, bias, layer = problem(name)
    x, theta = x + torch.randn(x.shape), torch.randn(len(index))

    def run(half: bool) -> tuple[Tensor, Tensor, Tensor]:
        mean, var = torch.empty(layer.out), torch.empty(layer.out)
        y, _t = forward(x, theta, None, index, bias, 0, layer, moments=(mean, var), half=half)
        return y, mean, var

    (y, *moments), (rounded, *of_rounded) = run(False), run(True)
    assert rounded.dtype == torch.bfloat16
    assert torch.equal(rounded, y.bfloat16())
    assert all(torch.equal(a, b) for a, b in zip(moments, of_rounded, strict=True))


@pytest.mark.parametrize("with_residual", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_where_nothing_is_lost_by_rounding_every_number_is_that_of_float32(name, with_residual) -> None:
    x, theta, index, bias, layer = problem(name)
    weight, shift = torch.rand(layer.out) + 0.5, torch.randn(layer.out)
    residual = torch.randn(layer.out_shape(x.shape)) if with_residual else None
    direction = torch.randn(layer.out_shape(x.shape))

    def run(half: bool) -> list[Tensor]:
        given = [None if v is None else v.clone().requires_grad_() for v in (x, theta, residual, weight, shift)]
        z, y, *_ = sparse_norm(*given[:2], index, bias, layer, *given[2:], 1e-5, True, half)
        assert y.dtype == (torch.bfloat16 if half else torch.float32)
        assert y.abs().max() <= 256
        z.backward(direction)
        return [z.detach(), *(v.grad for v in given if v is not None)]

    assert all(torch.equal(a, b) for a, b in zip(run(False), run(True), strict=True))


# ---- networks --------------------------------------------------------------------------------------------------------


class Blocks(nn.Module):
    """Residual blocks with and without a stride, and a mean over pixels."""

    def __init__(self) -> None:
        super().__init__()
        blocks = (BasicBlock(8, 8, 1), BasicBlock(8, 8, 1), BasicBlock(8, 12, 2), BasicBlock(12, 12, 1))
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, 12)"""
        return self.blocks(x).mean((2, 3))


def network() -> nn.Module:
    return ssvi.to_bnn(Blocks(), 0.3, point=True, seed=0)


def gradients(bnn: nn.Module, x: Tensor, *, half: bool) -> list[Tensor]:
    """Of a loss that looks at all outputs."""
    x = x.clone().requires_grad_()
    bnn.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss = bnn(x).square().sum()
    loss.backward()
    return [x.grad, *(p.grad.clone() for p in bnn.parameters())]


@contextmanager
def kept_bytes() -> Iterator[dict[int, int]]:
    """Bytes by the memory that autograd keeps."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_known", ByTensor())
    monkeypatch.setattr(links, "LEAST_NUMBERS", 0)


def test_a_block_in_one_operator_has_the_numbers_of_two(monkeypatch) -> None:
    bnn, x = network(), torch.randn(9, 8, 12, 16)
    together = gradients(bnn, x, half=True)
    monkeypatch.setattr(of_layers.pair, "supports", lambda *_: False)
    for value, expected in zip(together, gradients(bnn, x, half=True), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_an_input_that_is_computed_again_is_the_one_that_the_forward_pass_saw(monkeypatch, of_any_size) -> None:
    bnn, x = network(), torch.randn(9, 8, 12, 16)
    again = gradients(bnn, x, half=True)
    monkeypatch.setattr(links, "LEAST_NUMBERS", 1 << 40)
    for value, expected in zip(again, gradients(bnn, x, half=True), strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


def test_gradients_point_where_those_of_float32_do_and_half_the_memory_waits(of_any_size) -> None:
    bnn, x = network(), torch.randn(16, 8, 32, 32)
    sizes = {}
    for half in (False, True):
        with kept_bytes() as kept, torch.autocast("cpu", torch.bfloat16, enabled=half):
            loss = bnn(x.clone().requires_grad_()).square().sum()
        sizes[half] = sum(kept.values())
        del loss
    assert sizes[True] < 0.7 * sizes[False], "x itself and the masks of ReLUs are kept as they were"
    for value, expected in zip(gradients(bnn, x, half=True), gradients(bnn, x, half=False), strict=True):
        assert not torch.equal(value, expected)
        assert F.cosine_similarity(value.flatten(), expected.flatten(), 0) > 0.98


def test_gradients_of_gradients_agree_with_the_kernel() -> None:
    bnn, x = network(), torch.randn(3, 8, 8, 8, requires_grad=True)
    with HALF:
        loss = bnn(x).square().sum()
    parameters = list(bnn.parameters())
    once = torch.autograd.grad(loss, parameters, retain_graph=True)
    for value, expected in zip(torch.autograd.grad(loss, parameters, create_graph=True), once, strict=True):
        torch.testing.assert_close(value, expected, rtol=2e-2, atol=2e-2 * float(expected.abs().max()))


def test_an_operator_in_half_precision_passes_torchs_own_check() -> None:
    x, theta, index, bias, layer = problem("plain")
    x.requires_grad_(), theta.requires_grad_()
    norm = (torch.ones(layer.out), torch.zeros(layer.out), 1e-5, True)
    torch.library.opcheck(sparse_norm.op, (x, theta, index, bias, list(layer), None, *norm, True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("layer", "shape"),
    [(nn.Linear(32, 24), (5, 32)), (nn.Conv1d(6, 8, 3), (4, 6, 11)), (nn.Conv2d(6, 8, 3), (4, 6, 9, 9))],
)
def test_an_input_in_half_precision_is_computed_with_in_float32_by_the_native_kernel(layer, shape, dtype) -> None:
    bnn, x = ssvi.to_bnn(layer, 0.3, seed=0), torch.randn(shape).to(dtype)
    geometry, s = bnn.geometry, bnn.posterior.s
    with torch.autocast("cpu", dtype), ssvi.at_mean(bnn):
        assert kernels.chosen(x, geometry, s) == "native"
        y = bnn(x)
    assert y.dtype == dtype
    with ssvi.at_mean(bnn):
        assert torch.equal(y, bnn(x.float()).to(dtype))
    assert kernels.chosen(x, geometry, s) == "dense", "without autocast weights must have the dtype of x"


def test_a_network_whose_weights_are_in_half_precision_has_the_dense_kernel() -> None:
    bnn, x = network().bfloat16(), torch.randn(3, 8, 8, 8).bfloat16()
    plain = bnn(x)
    with HALF:
        assert bnn(x).dtype == torch.bfloat16
        torch.testing.assert_close(bnn(x), plain, rtol=0.1, atol=0.1)
