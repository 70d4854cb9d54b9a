"""The kernel for blocks of outputs against the dense reference: values and gradients, for any layer and batch."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import ssvi
from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import blocks

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
        (block * rows * groups, inputs, *kernel), stride, padding, dilation, groups=groups, block=block
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
    geometry = Geometry((block * rows, inputs), block=block)
    torch.manual_seed(seed)
    assert_equals_dense(geometry, support(geometry, block, share, seed), torch.randn(batch, inputs), bias)


def test_planes_that_need_bands_of_rows():
    geometry = Geometry((16, 48, 3, 3), (1, 1), (1, 1), (1, 1), block=8)
    assert_equals_dense(geometry, support(geometry, 8, 0.1, 0), torch.randn(2, 48, 70, 66), bias=True)


def test_two_threads_give_what_one_gives():
    geometry = Geometry((32, 16, 3, 3), (1, 1), (1, 1), (1, 1), block=8)
    index, threads = support(geometry, 8, 0.2, 0), torch.get_num_threads()
    for batch in (3, 64):
        x, theta = torch.randn(batch, 16, 12, 12), torch.randn(index.numel())
        layer, grad = Convolution.of(geometry), torch.randn(batch, 32, 12, 12)
        results = []
        try:
            for n in (1, 2):
                torch.set_num_threads(n)
                y = blocks.block_forward(x, theta, index, None, layer, 8)
                results.append([y, *blocks.block_backward(grad, x, theta, index, layer, 8, True)])
        finally:
            torch.set_num_threads(threads)
        for one, two in zip(*results, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-3)


def test_an_index_that_is_no_union_of_blocks_is_served_too():
    geometry = Geometry((8, 4, 3, 3), (1, 1), (1, 1), (1, 1), block=4)
    index = torch.randperm(geometry.d)[:40].sort().values.int()
    assert not blocks.whole_blocks(index, 36, 4)
    assert_equals_dense(geometry, index, torch.randn(3, 4, 6, 6), bias=True)
    whole = support(geometry, 4, 0.3, 0)
    assert blocks.whole_blocks(whole, 36, 4)
    x, theta = torch.randn(2, 4, 6, 6), torch.randn(whole.numel())
    native.fixed(x, theta, whole, geometry)
    whole[-1] -= 1  # a change in place is noticed
    torch.testing.assert_close(native.fixed(x, theta, whole, geometry), dense.fixed(x, theta, whole, geometry))


def test_gradients_can_be_differentiated_again():
    geometry = Geometry((8, 2, 3, 3), (1, 1), (1, 1), (1, 1), block=4)
    index = support(geometry, 4, 0.4, 1)
    x, theta = torch.randn(2, 2, 5, 5, requires_grad=True), torch.randn(index.numel(), requires_grad=True)
    seconds = []
    for kernel in (native, dense):
        (grad,) = torch.autograd.grad(kernel.fixed(x, theta, index, geometry).pow(3).sum(), theta, create_graph=True)
        seconds.append(torch.autograd.grad(grad.square().sum(), [x, theta]))
    for ours, theirs in zip(*seconds, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item())


def test_a_layer_with_blocks_takes_the_kernel_and_one_without_does_not():
    bnn = ssvi.to_bnn(
        torch.nn.Sequential(torch.nn.Conv2d(4, 16, 3), torch.nn.Conv2d(16, 10, 3)), 0.2, structure="block:8"
    )
    assert [layer.geometry.block for _, layer in ssvi.layers(bnn)] == [8, 5]
    assert [blocks.serves(layer.geometry.block) for _, layer in ssvi.layers(bnn)] == [True, False]
    x = torch.randn(3, 4, 9, 9)
    with ssvi.at_mean(bnn):
        ours = bnn(x)
        with ssvi.kernels.use("dense"):
            torch.testing.assert_close(ours, bnn(x), rtol=1e-4, atol=1e-5)
