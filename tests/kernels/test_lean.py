"""The product by a dense weight that nobody keeps: its values, its gradients of any order, and what it leaves in memory."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, vmap

from ssvi.bench.launches import StepCount
from ssvi.kernels import dense, lean
from ssvi.kernels.geometry import Geometry

CASES = {
    "vector": (Geometry((5, 7)), (7,)),
    "linear": (Geometry((5, 7)), (3, 7)),
    "sequence": (Geometry((5, 7)), (2, 3, 7)),
    "conv1d": (Geometry((4, 3, 3), (2,), (1,), (1,)), (2, 3, 9)),
    "conv2d": (Geometry((4, 3, 3, 3), (1, 2), (1, 0), (1, 1)), (2, 3, 5, 7)),
    "image": (Geometry((4, 3, 3, 3), (1, 1), (1, 1), (1, 1)), (3, 5, 5)),
    "groups": (Geometry((6, 2, 3, 3), (1, 1), (2, 2), (2, 2), 2), (2, 4, 5, 5)),
    "conv3d": (Geometry((2, 2, 2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1)), (1, 2, 3, 3, 3)),
    "transposed": (Geometry((4, 3, 3, 3), (2, 2), (1, 1), (1, 1), 2, (1, 0)), (2, 4, 3, 4)),
}
cases = pytest.mark.parametrize(("geometry", "shape"), CASES.values(), ids=CASES)


def layer(geometry: Geometry, shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """x, theta, index and bias of a layer with a third of its weights live."""
    index = torch.randperm(geometry.d)[: geometry.d // 3].sort().values.to(torch.int32)
    outputs = geometry.shape[0] if geometry.output_padding is None else geometry.shape[1] * geometry.groups
    x, theta, bias = torch.randn(shape), torch.randn(index.numel()), torch.randn(outputs)
    x, theta, bias = (values.to(dtype).requires_grad_() for values in (x, theta, bias))
    return x, theta, index, bias


def reference(x: Tensor, theta: Tensor, index: Tensor, geometry: Geometry, bias: Tensor | None = None) -> Tensor:
    return geometry.apply(x, dense.scatter(theta, index, geometry), bias)


@cases
def test_values_and_gradients_are_those_of_the_reference(geometry, shape):
    x, theta, index, bias = layer(geometry, shape)
    y, want = dense.fixed(x, theta, index, geometry, bias), reference(x, theta, index, geometry, bias)
    torch.testing.assert_close(y, want)
    slope = torch.randn_like(y)
    for got, expected in zip(*(torch.autograd.grad(v, (x, theta, bias), slope) for v in (y, want)), strict=True):
        torch.testing.assert_close(got, expected)


@cases
def test_first_and_second_derivatives_against_finite_differences(geometry, shape):
    x, theta, index, bias = layer(geometry, shape)
    function = lambda x, theta, bias: lean.fixed(x, theta, index, geometry, bias)  # noqa: E731
    assert gradcheck(function, (x, theta, bias))
    assert gradgradcheck(function, (x, theta, bias))


@pytest.mark.parametrize("needed", ["x", "theta", "bias"])
@pytest.mark.parametrize("case", ["linear", "conv2d", "transposed"])
def test_only_the_gradients_that_are_needed(case, needed):
    geometry, shape = CASES[case]
    values = dict(zip(("x", "theta", "index", "bias"), layer(geometry, shape), strict=True))
    for name, value in values.items():
        if name not in (needed, "index"):
            value.requires_grad_(False)
    results = []
    for function in (lean.fixed, reference):
        y = function(values["x"], values["theta"], values["index"], geometry, values["bias"])
        results.append(torch.autograd.grad(y.square().sum(), values[needed])[0])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("case", ["linear", "conv2d"])
def test_autocast_has_the_numbers_of_the_reference_and_no_wide_weight(case):
    geometry, shape = CASES[case]
    x, theta, index, bias = layer(geometry, shape, torch.float32)
    results = []
    for function in (reference, lean.fixed):
        with StepCount() as count, torch.autocast("cpu", torch.bfloat16):
            y = function(x, theta, index, geometry, bias)
            results.append((y, *torch.autograd.grad(y.float().square().sum(), (x, theta, bias))))
        wide = ("cpu", torch.float32, geometry.d) in count.made
        assert wide == (function is reference)  # so that the test can fail
    for got, want in zip(*results, strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want)


def test_autocast_leaves_float64_alone():
    geometry, shape = CASES["linear"]
    with torch.autocast("cpu", torch.bfloat16):
        assert lean.fixed(*layer(geometry, shape)[:3], geometry).dtype == torch.float64


def test_nothing_of_the_size_of_the_weight_is_saved():
    geometry, shape = CASES["conv2d"]
    x, theta, index, bias = layer(geometry, shape)
    for function, keeps in ((lean.fixed, False), (reference, True)):
        saved: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.numel()) or t, lambda t: t):
            function(x, theta, index, geometry, bias)
        assert (geometry.d in saved) == keeps


def test_no_position_becomes_int64():
    geometry, shape = CASES["conv2d"]
    x, theta, index, bias = layer(geometry, shape)
    with StepCount() as count:
        lean.fixed(x, theta, index, geometry, bias).square().sum().backward()
    assert theta.grad is not None
    assert not [made for made in count.made if made[1] == torch.int64]


def test_a_dense_gradient_is_freed_with_its_layer():
    """Ten layers hold no more than the W or the dW of one of them beside their activations and live weights."""
    peaks = {}
    geometry = Geometry((256, 256))
    for function in (lean.fixed, reference):
        for depth in (2, 10):
            layers = [layer(geometry, (1, 256))[1:3] for _ in range(depth)]
            x = torch.randn(1, 256, dtype=torch.float64)
            with StepCount() as count:
                for theta, index in layers:
                    x = function(x, theta, index, geometry)
                x.sum().backward()
            peaks[function.__name__, depth] = count.peak
    weight = 8 * geometry.d
    live = weight / 3
    assert peaks["fixed", 10] < 1.2 * weight + 10 * live
    assert peaks["reference", 10] > 10 * weight


def test_torch_func_and_the_compiler_take_the_reference():
    geometry, shape = CASES["conv2d"]
    x, theta, index, _ = layer(geometry, shape)
    loss = lambda theta, x: dense.fixed(x, theta, index, geometry).square().sum()  # noqa: E731
    each = vmap(grad(loss), (None, 0))(theta, x)
    for n in range(len(x)):
        torch.testing.assert_close(each[n], torch.autograd.grad(loss(theta, x[n]), theta)[0])
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(theta, x), theta), torch.autograd.grad(loss(theta, x), theta)
    )


def test_batched_gradients():
    geometry, shape = CASES["linear"]
    x, theta, index, _ = layer(geometry, shape)
    y = lean.fixed(x, theta, index, geometry)
    slopes = torch.randn(4, *y.shape, dtype=torch.float64)
    (together,) = torch.autograd.grad(y, theta, slopes, is_grads_batched=True, retain_graph=True)
    for slope, got in zip(slopes, together, strict=True):
        torch.testing.assert_close(got, torch.autograd.grad(y, theta, slope, retain_graph=True)[0])
