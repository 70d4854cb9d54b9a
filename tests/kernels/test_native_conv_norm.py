"""A convolution at one theta and the BatchNorm behind it, as one operator in training, against torch in float64."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import relu_mask
from ssvi.kernels.native.conv_norm import conv_norm, sparse_norm, supports

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

LAYERS = {
    "plain": (nn.Conv2d(4, 6, 3, padding=1, bias=False), (5, 4, 9, 8)),
    "wide rows": (nn.Conv2d(3, 5, 3, padding=1), (3, 3, 6, 32)),
    "strided": (nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), (17, 4, 16, 16)),
    "1x1 strided": (nn.Conv2d(4, 6, 1, stride=2, bias=False), (6, 4, 7, 32)),
    "uneven": (nn.Conv2d(6, 9, (2, 3), stride=(3, 1), padding=(3, 0), dilation=(1, 2), groups=3), (4, 6, 11, 7)),
    "one row": (nn.Conv2d(2, 20, (1, 3), padding=(0, 1)), (19, 2, 1, 5)),
    "tiny planes": (nn.Conv2d(5, 7, 3, padding=1, bias=False), (35, 5, 2, 2)),
}


def problem(name: str) -> tuple[nn.BatchNorm2d, Tensor, Tensor, Tensor, Tensor | None, Convolution]:
    """A norm, x, theta, its index, a bias and the layer."""
    conv, shape = LAYERS[name]
    geometry = Geometry(tuple(conv.weight.shape), conv.stride, conv.padding, conv.dilation, conv.groups)
    index = torch.randperm(geometry.d)[: geometry.d // 3].sort().values.int()
    norm = nn.BatchNorm2d(conv.out_channels)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.normal_(norm.bias)
    bias = None if conv.bias is None else torch.randn(conv.out_channels)
    return norm, torch.randn(shape), torch.randn(len(index)), index, bias, Convolution.of(geometry)


def formula(
    norm: nn.BatchNorm2d, x: Tensor, theta: Tensor, index: Tensor, bias: Tensor | None, layer: Convolution,
    residual: Tensor | None, relu: bool,
) -> Tensor:  # fmt: skip
    weight = torch.zeros(layer.d, dtype=theta.dtype).index_put((index.long(),), theta)
    weight = weight.view(layer.out, layer.in_per_group, layer.kernel_h, layer.kernel_w)
    sizes = ((layer.stride_h, layer.stride_w), (layer.padding_h, layer.padding_w), (layer.dilation_h, layer.dilation_w))
    z = norm(F.conv2d(x, weight, bias, *sizes, layer.groups))
    z = z if residual is None else z + residual
    return F.relu(z) if relu else z


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("with_residual", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_values_gradients_and_running_statistics(name, with_residual, relu, count, threads) -> None:
    threads(count)
    norm, x, theta, index, bias, layer = problem(name)
    shape = layer.out_shape(x.shape)
    residual = torch.randn(shape) if with_residual else None
    direction = torch.randn(shape)

    def run(dtype: torch.dtype) -> list[Tensor]:
        own = copy.deepcopy(norm).to(dtype)
        given = [None if v is None else v.to(dtype, copy=True).requires_grad_() for v in (x, theta, residual)]
        shift = None if bias is None else bias.to(dtype)
        if dtype is torch.float32:
            z = conv_norm(own, *given[:2], index, shift, layer, residual=given[2], relu=relu)
        else:
            z = formula(own, *given[:2], index, shift, layer, given[2], relu)
        z.backward(direction.to(dtype))
        gradients = [v.grad for v in (*given, own.weight, own.bias) if v is not None]
        return [z.detach(), *gradients, own.running_mean, own.running_var, own.num_batches_tracked]

    for value, expected in zip(run(torch.float32), run(torch.float64), strict=True):
        torch.testing.assert_close(
            value.double(), expected.double(), rtol=1e-4, atol=2e-5 * float(expected.abs().max())
        )


@pytest.mark.parametrize("name", LAYERS)
def test_the_forward_pass_depends_on_no_thread_and_gradients_are_repeatable(name, threads) -> None:
    norm, x, theta, index, bias, layer = problem(name)
    x.requires_grad_(), theta.requires_grad_()
    outputs, gradients = [], []
    for count in (1, 2, 2, 3):
        threads(count)
        z, _y, mean, var, *_ = sparse_norm(x, theta, index, bias, layer, None, norm.weight, norm.bias, norm.eps, True)
        outputs.append((z, mean, var))
        gradients.append(torch.autograd.grad(z.square().sum(), (x, theta)))
    for other in outputs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(outputs[0], other, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(gradients[1], gradients[2], strict=True))


@pytest.mark.parametrize("name", LAYERS)
def test_of_a_relu_behind_a_sum_a_bit_is_kept_for_each_value(name) -> None:
    norm, x, theta, index, bias, layer = problem(name)
    residual = torch.randn(layer.out_shape(x.shape))
    z, *_, mask = sparse_norm(x, theta, index, bias, layer, residual, norm.weight, norm.bias, norm.eps, True)
    assert torch.equal(relu_mask.passed(mask, z.shape), z > 0)
    assert mask.numel() < z.numel() or z.shape[2:].numel() < 8


def test_the_variance_survives_a_mean_that_is_far_from_zero() -> None:
    """Means of squares minus squares of means would have no correct digit here."""
    norm, x, _theta, _index, _bias, _layer = problem("plain")
    layer = Convolution.of(Geometry((4, 4, 1, 1), (1, 1), (0, 0), (1, 1)))
    index = torch.arange(0, 16, 5, dtype=torch.int32)
    bias = torch.full((4,), 3e3)
    _z, y, mean, var, *_ = sparse_norm(x + 1e4, torch.ones(4), index, bias, layer, None, None, None, norm.eps, False)
    exact = y.double().transpose(0, 1).flatten(1)
    torch.testing.assert_close(mean.double(), exact.mean(1), rtol=1e-6, atol=0)
    torch.testing.assert_close(var.double(), exact.var(1, correction=0), rtol=1e-3, atol=0)


def test_opcheck_and_gradients_of_gradients() -> None:
    norm, x, theta, index, bias, layer = problem("plain")
    x.requires_grad_(), theta.requires_grad_()
    args = (index, bias, list(layer), torch.randn(layer.out_shape(x.shape)), norm.weight, norm.bias, 1e-5, True)
    torch.library.opcheck(sparse_norm.op, (x, theta, *args))
    z, *_ = sparse_norm(x, theta, *args)
    native_grad = torch.autograd.grad(z.sum(), (x, theta), retain_graph=True)
    once = torch.autograd.grad(z.sum(), (x, theta), create_graph=True)
    for value, expected in zip(once, native_grad, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-4)
    twice = torch.autograd.grad(once[1].square().sum(), theta)[0]
    wide = theta.detach().double().requires_grad_()
    own, residual = copy.deepcopy(norm).double(), args[3].double()
    z = formula(own, x.detach().double(), wide, index, None, layer, residual, True)
    first = torch.autograd.grad(z.sum(), wide, create_graph=True)[0]
    expected = torch.autograd.grad(first.square().sum(), wide)[0]
    torch.testing.assert_close(twice.double(), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_one_pixel_and_evaluation_are_left_to_others() -> None:
    norm, x, *_, layer = problem("plain")
    assert supports(norm, x, layer)
    assert not supports(norm.eval(), x, layer)
    whole = Convolution.of(Geometry((6, 4, 9, 8), (1, 1), (0, 0), (1, 1)))
    assert not supports(norm.train(), x, whole)
