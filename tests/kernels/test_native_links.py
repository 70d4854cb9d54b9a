"""Inputs that are computed again in the backward pass: the same gradients, and less that is kept between the passes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native
from ssvi.kernels.native import links
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.nn.conv_norm import conv_norm
from ssvi.nn.models import BasicBlock, ResNet

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tensors are not kept either, and nothing is known from before."""
    monkeypatch.setattr(links, "_known", ByTensor())
    monkeypatch.setattr(links, "LEAST_NUMBERS", 0)


def network(blocks: tuple[int, ...] = (2, 2)) -> nn.Module:
    """A residual network at one theta, whose norms are not those of the start."""
    torch.manual_seed(0)
    net = ResNet(blocks, classes=3, width=8)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    return ssvi.to_bnn(net, 0.2, point=True, seed=0)


def gradients(net: nn.Module, x: Tensor, kernel: str) -> list[Tensor]:
    """Of x and of every parameter."""
    x = x.clone().requires_grad_()
    net.zero_grad()
    with kernels.use(kernel):
        net(x).square().sum().backward()
    assert x.grad is not None
    return [x.grad, *(p.grad.clone() for p in net.parameters() if p.grad is not None)]


def assert_equal_gradients(values: list[Tensor], expected: list[Tensor]) -> None:
    for value, right in zip(values, expected, strict=True):
        torch.testing.assert_close(value, right, rtol=1e-3, atol=1e-4 * float(right.abs().max()))


def kept(forward: Callable[[], Tensor]) -> dict[int, Tensor]:
    """The images that autograd keeps for the backward pass of `forward`, by the address of their memory."""
    images: dict[int, Tensor] = {}

    def see(value: Tensor) -> Tensor:
        if value.dim() == 4 and value.untyped_storage().nbytes() >= value.numel() * value.element_size():
            images[value.data_ptr()] = value
        return value

    with torch.autograd.graph.saved_tensors_hooks(see, lambda value: value):
        forward()
    return images


# ---- the same gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(5, 3, 16, 16), (3, 3, 9, 7), (2, 3, 8, 32)])
@pytest.mark.parametrize("blocks", [(2, 2), (6,), (1, 1, 1)])
def test_gradients_are_those_of_the_dense_kernel(blocks, shape) -> None:
    net, x = network(blocks), torch.randn(shape)
    assert_equal_gradients(gradients(net, x, "native"), gradients(net, x, "dense"))


def test_gradients_are_those_of_inputs_that_are_kept(monkeypatch) -> None:
    net, x = network(), torch.randn(4, 3, 16, 16)
    values = gradients(net, x, "native")
    monkeypatch.setattr(links, "LEAST_NUMBERS", 1 << 40)
    assert_equal_gradients(values, gradients(net, x, "native"))


@pytest.mark.parametrize("relu", [False, True])
def test_gradients_of_gradients_reach_what_came_before(relu) -> None:
    torch.manual_seed(0)
    first, second = (ssvi.to_bnn(nn.Conv2d(4, 4, 3, padding=1, bias=False), 0.3, point=True, seed=0) for _ in range(2))
    norms, x = (nn.BatchNorm2d(4), nn.BatchNorm2d(4)), torch.randn(3, 4, 8, 8, requires_grad=True)

    def slope_of_slope(kernel: str) -> tuple[Tensor, ...]:
        with kernels.use(kernel):
            z = conv_norm(first, norms[0], x, relu=relu)
            z = conv_norm(second, norms[1], z, residual=z, relu=relu)
            slope = torch.autograd.grad(z.pow(3).sum(), x, create_graph=True)[0]
            return torch.autograd.grad(slope.pow(2).sum(), [x, *first.parameters(), *second.parameters()])

    assert_equal_gradients(list(slope_of_slope("native")), list(slope_of_slope("dense")))


# ---- what is kept ----------------------------------------------------------------------------------------------------


def test_a_block_keeps_the_outputs_of_its_layers_and_nothing_else() -> None:
    bnn, x = ssvi.to_bnn(BasicBlock(8, 16, stride=2), 0.2, point=True), torch.randn(4, 8, 16, 16)
    images = kept(lambda: bnn(x).sum())
    assert sorted(tuple(image.shape) for image in images.values()) == [(4, 8, 16, 16)] + 3 * [(4, 16, 8, 8)]


def test_a_network_keeps_one_tensor_for_each_layer() -> None:
    net, x = network((2, 2, 2)), torch.randn(4, 3, 16, 16)
    layers = sum(isinstance(module, nn.BatchNorm2d) for module in net.modules())
    assert len(kept(lambda: net(x))) == layers + 1  # and x; what the head gets is no image


def test_of_a_long_sum_every_third_value_is_kept() -> None:
    """The stem and two blocks are a sum of three; the third and the sixth block begin new ones."""
    net, x = network((9,)), torch.randn(4, 3, 16, 16)
    layers = sum(isinstance(module, nn.BatchNorm2d) for module in net.modules())
    assert len(kept(lambda: net(x))) == layers + 1 + 2


def test_nothing_outlives_the_backward_pass() -> None:
    net, x = network(), torch.randn(4, 3, 16, 16)
    loss = net(x).sum()
    images = [weakref.ref(entry) for known in links._known._entries.values() for entry in known.value.ys]
    loss.backward()
    gc.collect()
    assert all(image() is None for image in images)
    assert len(links._known) == 0


# ---- where it does not apply -----------------------------------------------------------------------------------------


def test_an_input_that_was_changed_is_kept() -> None:
    torch.manual_seed(0)
    conv = ssvi.to_bnn(nn.Conv2d(4, 4, 3, padding=1, bias=False), 0.3, point=True, seed=0)
    norm, x = nn.BatchNorm2d(4), torch.randn(3, 4, 8, 8, requires_grad=True)

    def gradient(kernel: str) -> list[Tensor]:
        with kernels.use(kernel):
            z = conv_norm(conv, norm, x).mul_(2).add_(1)
            assert links.links_of(z) is None
            return list(torch.autograd.grad(conv_norm(conv, norm, z).pow(3).sum(), [x, *conv.parameters()]))

    assert_equal_gradients(gradient("native"), gradient("dense"))


def test_an_input_that_is_changed_afterwards_changes_no_gradient() -> None:
    """The layer has kept what the input was made of, and not the input."""
    conv = ssvi.to_bnn(nn.Conv2d(4, 4, 3, padding=1, bias=False), 0.3, point=True, seed=0)
    x = torch.randn(3, 4, 8, 8)

    def gradient(*, change: bool) -> list[Tensor]:
        z = conv_norm(conv, nn.BatchNorm2d(4), x, relu=True)
        loss = conv_norm(conv, nn.BatchNorm2d(4), z).pow(3).sum()
        if change:
            with torch.no_grad():
                z.zero_()
        return list(torch.autograd.grad(loss, list(conv.parameters())))

    before = gradient(change=False)
    assert any(bool(grad.any()) for grad in before)
    assert_equal_gradients(gradient(change=True), before)


def test_a_strange_residual_is_not_held_to_account() -> None:
    conv, residual = (
        ssvi.to_bnn(nn.Conv2d(4, 4, 3, padding=1, bias=False), 0.3, point=True, seed=0),
        torch.randn(3, 4, 8, 8),
    )
    z = conv_norm(conv, nn.BatchNorm2d(4), torch.randn(3, 4, 8, 8), residual=residual, relu=True)
    assert links.links_of(z) is None
    residual.zero_()  # torch would refuse the backward pass if the layer had kept it
    z.sum().backward()


@pytest.mark.parametrize("mode", ["no_grad", "inference", "eval"])
def test_nothing_is_remembered_without_gradients(mode) -> None:
    net, x = network(), torch.randn(4, 3, 16, 16)
    if mode == "eval":
        net.eval()
    with torch.inference_mode() if mode == "inference" else torch.no_grad():
        net(x)
    assert len(links._known) == 0


def test_images_of_one_row_are_kept() -> None:
    conv = ssvi.to_bnn(nn.Conv2d(4, 4, (1, 3), padding=(0, 1)), 0.3, point=True, seed=0)
    z = conv_norm(conv, nn.BatchNorm2d(4), torch.randn(3, 4, 1, 8), relu=True)
    assert links.links_of(z) is None


def test_a_network_of_other_modules_gets_the_same_gradients() -> None:
    """z goes to layers of torch, to a pooling and to a sum as well: whoever needs its values keeps them."""
    torch.manual_seed(0)
    first, second = (ssvi.to_bnn(nn.Conv2d(4, 4, 3, padding=1, bias=False), 0.3, point=True, seed=0) for _ in range(2))
    norms, dense = (nn.BatchNorm2d(4), nn.BatchNorm2d(4)), nn.Conv2d(4, 4, 3, padding=1)
    x = torch.randn(3, 4, 8, 8, requires_grad=True)

    def gradient(kernel: str) -> list[Tensor]:
        with kernels.use(kernel):
            z = conv_norm(first, norms[0], x, relu=True)
            y = conv_norm(second, norms[1], z) * torch.sigmoid(z) + F.max_pool2d(dense(z), 3, 1, 1)
            return list(torch.autograd.grad(y.square().sum(), [x, *first.parameters(), *dense.parameters()]))

    assert_equal_gradients(gradient("native"), gradient("dense"))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_of_torch_work(reentrant) -> None:
    net, x = network(), torch.randn(4, 3, 16, 16)
    expected = gradients(net, x, "native")
    inner = net.stages[1].forward
    net.stages[1].forward = lambda y: torch.utils.checkpoint.checkpoint(inner, y, use_reentrant=reentrant)
    assert_equal_gradients(gradients(net, x, "native"), expected)
