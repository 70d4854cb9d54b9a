"""Supports in which neighbouring outputs have the same inputs: found in the index, and equal to the dense reference."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import ssvi
from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import passes
from ssvi.nn.models import resnet18

pytestmark = pytest.mark.skipif(not native.available(), reason="no native kernels")


def support(geometry: Geometry, block: int, share: float, seed: int) -> Tensor:
    """A union of whole blocks."""
    fan_in = geometry.d // geometry.shape[0]
    units = geometry.d // block
    chosen = torch.randperm(units, generator=torch.Generator().manual_seed(seed))[: max(1, round(share * units))]
    rows, columns = chosen // fan_in, chosen % fan_in
    positions = (rows[:, None] * block + torch.arange(block)) * fan_in + columns[:, None]
    return positions.flatten().sort().values.int()


def assert_equals_dense(geometry: Geometry, index: Tensor, x: Tensor, bias: bool) -> None:
    theta = torch.randn(index.numel(), requires_grad=True)
    shift = torch.randn(geometry.shape[0], requires_grad=True) if bias else None
    results = []
    for kernel in (native, dense):
        leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        y = kernel.fixed(leaf, theta, index, geometry, shift)
        g = torch.linspace(-1, 1, y.numel()).view_as(y)
        grads = torch.autograd.grad((y * g).sum(), [leaf, theta, *([shift] if shift is not None else [])])
        results.append([y, *grads])
    for ours, theirs in zip(*results, strict=True):
        scale = theirs.abs().max().clamp_min(1.0).item()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5 * scale)


@given(
    block=st.sampled_from([4, 8, 12, 16]), groups=st.integers(1, 2), inputs=st.integers(1, 5), rows=st.integers(1, 2),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)), stride=st.tuples(st.integers(1, 3), st.integers(1, 2)),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 1)), dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    size=st.tuples(st.integers(5, 20), st.integers(5, 37)), batch=st.integers(1, 18), share=st.floats(0.02, 1.0),
    bias=st.booleans(), last=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_convolutions(
    block, groups, inputs, rows, kernel, stride, padding, dilation, size, batch, share, bias, last, seed
):
    geometry = Geometry(
        (block * rows * groups, inputs, *kernel), stride, padding, dilation, groups=groups
    )  # fmt: skip
    torch.manual_seed(seed)
    x = torch.randn(batch, inputs * groups, *size)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    assert_equals_dense(geometry, support(geometry, block, share, seed), x, bias)


@given(
    block=st.sampled_from([4, 8, 16]), rows=st.integers(1, 4), inputs=st.integers(1, 40), batch=st.integers(1, 300),
    share=st.floats(0.02, 1.0), bias=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_fully_connected_layers(block, rows, inputs, batch, share, bias, seed):
    geometry = Geometry((block * rows, inputs))
    torch.manual_seed(seed)
    assert_equals_dense(geometry, support(geometry, block, share, seed), torch.randn(batch, inputs), bias)


def test_planes_that_need_bands_of_rows():
    geometry = Geometry((16, 48, 3, 3), (1, 1), (1, 1), (1, 1))
    assert_equals_dense(geometry, support(geometry, 8, 0.1, 0), torch.randn(2, 48, 70, 66), bias=True)


def test_two_threads_give_what_one_gives():
    geometry = Geometry((32, 16, 3, 3), (1, 1), (1, 1), (1, 1))
    index, threads = support(geometry, 8, 0.2, 0), torch.get_num_threads()
    for batch in (3, 64):
        x, theta = torch.randn(batch, 16, 12, 12), torch.randn(index.numel())
        results = []
        try:
            for n in (1, 2):
                torch.set_num_threads(n)
                results.append(native.fixed(x, theta, index, geometry))
        finally:
            torch.set_num_threads(threads)
        torch.testing.assert_close(*results, rtol=1e-5, atol=1e-3)


def block_found(geometry: Geometry, index: Tensor) -> int:
    """The outputs that share a load of x in the kernels."""
    conv = Convolution.of(geometry)
    return passes.build(index, torch.Size((2, conv.channels, 9, 9)), conv).pattern._obj.block


def most() -> int:
    """The largest block that the registers hold."""
    dense_support = torch.arange(16 * 4 * 9).int()
    return block_found(Geometry((16, 4, 3, 3), (1, 1), (1, 1), (1, 1)), dense_support)


@pytest.mark.parametrize("block", [4, 8, 16])
def test_blocks_are_found_in_the_index(block):
    geometry = Geometry((32, 4, 3, 3), (1, 1), (1, 1), (1, 1), groups=2)
    assert most() in (4, 8)
    assert block_found(geometry, support(geometry, block, 0.3, 0)) == min(block, most())


@pytest.mark.parametrize("outputs", [12, 20])
def test_blocks_do_not_reach_into_another_group(outputs):
    geometry = Geometry((2 * outputs, 4, 3, 3), (1, 1), (1, 1), (1, 1), groups=2)
    assert block_found(geometry, torch.arange(geometry.d).int()) == 4


def test_one_weight_of_another_place_leaves_no_block():
    geometry = Geometry((8, 4, 3, 3), (1, 1), (1, 1), (1, 1))
    index = support(geometry, 8, 0.3, 0)
    x, theta = torch.randn(2, 4, 6, 6), torch.randn(index.numel())
    assert block_found(geometry, index) > 1
    native.fixed(x, theta, index, geometry)
    index[-1] -= 1  # a change in place is noticed
    assert block_found(geometry, index) == 1
    torch.testing.assert_close(native.fixed(x, theta, index, geometry), dense.fixed(x, theta, index, geometry))


def test_a_support_without_blocks_has_none():
    geometry = Geometry((8, 4, 3, 3), (1, 1), (1, 1), (1, 1))
    index = torch.randperm(geometry.d)[:40].sort().values.int()
    assert block_found(geometry, index) == 1
    assert_equals_dense(geometry, index, torch.randn(3, 4, 6, 6), bias=True)


def test_gradients_can_be_differentiated_again():
    geometry = Geometry((8, 2, 3, 3), (1, 1), (1, 1), (1, 1))
    index = support(geometry, 4, 0.4, 1)
    x, theta = torch.randn(2, 2, 5, 5, requires_grad=True), torch.randn(index.numel(), requires_grad=True)
    seconds = []
    for kernel in (native, dense):
        (grad,) = torch.autograd.grad(kernel.fixed(x, theta, index, geometry).pow(3).sum(), theta, create_graph=True)
        seconds.append(torch.autograd.grad(grad.square().sum(), [x, theta]))
    for ours, theirs in zip(*seconds, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item())


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_layers_of_blocks_and_their_norms_equal_the_dense_kernel(mode):
    net = resnet18(width=16)
    bnn = ssvi.to_bnn(net, 0.1, structure="block:8", keep_dense=("conv1", "linear"), point=True)
    getattr(bnn, mode)()
    x, results = torch.randn(4, 3, 32, 32), []
    for kernel in ("native", "dense"):
        with ssvi.kernels.use(kernel):
            y = bnn(x)
            results.append([y, *torch.autograd.grad(y.square().sum(), list(bnn.parameters()))])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=2e-3, atol=2e-4 * theirs.abs().max().clamp_min(1.0).item())


def test_the_layers_of_a_network_have_blocks_where_they_divide_the_outputs():
    net = torch.nn.Sequential(torch.nn.Conv2d(4, 16, 3), torch.nn.Conv2d(16, 10, 3))
    bnn = ssvi.to_bnn(net, 0.2, structure="block:8")
    found = [block_found(layer.geometry, layer.posterior.index) for _, layer in ssvi.layers(bnn)]
    assert found == [most(), 1]
