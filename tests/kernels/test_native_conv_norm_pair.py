"""Both convolutions of a residual block with their norms as one operator, against torch in float64 and against two calls."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi import kernels
from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import conv_norm as single
from ssvi.kernels.native import conv_norm_pair as pair
from ssvi.kernels.native import links
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.nn.conv_norm import conv_norm, conv_norm_pair
from ssvi.nn.models import BasicBlock

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

SAME = {"padding": 1, "bias": False}
PAIRS = {  # two layers, the shape of x, and whether the residual may be x itself
    "plain": (nn.Conv2d(6, 6, 3, **SAME), nn.Conv2d(6, 6, 3, **SAME), (5, 6, 9, 8), True),
    "wide rows": (nn.Conv2d(4, 4, 3, **SAME), nn.Conv2d(4, 4, 3, **SAME), (3, 4, 6, 32), True),
    "4x4": (nn.Conv2d(8, 8, 3, **SAME), nn.Conv2d(8, 8, 3, **SAME), (128, 8, 4, 4), True),
    "7x7": (nn.Conv2d(5, 5, 3, **SAME), nn.Conv2d(5, 5, 3, **SAME), (35, 5, 7, 7), True),
    "one image": (nn.Conv2d(4, 4, 3, **SAME), nn.Conv2d(4, 4, 3, **SAME), (1, 4, 11, 13), True),
    "strided": (nn.Conv2d(4, 6, 3, stride=2, **SAME), nn.Conv2d(6, 6, 3, **SAME), (17, 4, 16, 16), False),
    "odd and strided": (nn.Conv2d(4, 6, 3, stride=2, **SAME), nn.Conv2d(6, 6, 3, **SAME), (3, 4, 15, 9), False),
    "one column, strided": (nn.Conv2d(4, 4, 3, stride=(1, 2), **SAME), nn.Conv2d(4, 4, 3, **SAME), (7, 4, 5, 1), True),
    "uneven": (
        nn.Conv2d(4, 6, 3, padding=1),
        nn.Conv2d(6, 9, (2, 3), padding=(2, 0), dilation=(1, 2), groups=3),
        (4, 4, 6, 7),
        False,
    ),
    "in bands": (nn.Conv2d(2, 40, 3, **SAME), nn.Conv2d(40, 3, 3, **SAME), (2, 2, 90, 64), False),
}
RESIDUALS = ("none", "own", "x")


def convolved(conv: nn.Conv2d, density: float = 1 / 3) -> pair.Convolved:
    """A layer with live weights at random places, none of them on its last input and its last output."""
    geometry = Geometry(tuple(conv.weight.shape), conv.stride, conv.padding, conv.dilation, conv.groups)
    chosen = torch.rand(geometry.shape) < density
    chosen[-1], chosen[:, -1] = False, False
    index = chosen.flatten().nonzero().flatten().int()
    norm = nn.BatchNorm2d(conv.out_channels)
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.normal_(norm.bias)
    bias = None if conv.bias is None else torch.randn(conv.out_channels)
    return pair.Convolved(torch.randn(len(index)), index, bias, Convolution.of(geometry), norm)


def leaves(layer: pair.Convolved, dtype: torch.dtype = torch.float32) -> pair.Convolved:
    """A copy whose gradients are asked for."""
    bias = None if layer.bias is None else layer.bias.to(dtype)
    theta = layer.theta.to(dtype, copy=True).requires_grad_()
    return layer._replace(theta=theta, bias=bias, norm=copy.deepcopy(layer.norm).to(dtype))


def by_torch(x: Tensor, layer: pair.Convolved) -> Tensor:
    """norm(theta * x) in torch's operators."""
    conv = layer.layer
    weight = torch.zeros(conv.d, dtype=x.dtype).index_put((layer.support.long(),), layer.theta)
    weight = weight.view(conv.out, conv.in_per_group, conv.kernel_h, conv.kernel_w)
    sizes = ((conv.stride_h, conv.stride_w), (conv.padding_h, conv.padding_w), (conv.dilation_h, conv.dilation_w))
    return layer.norm(F.conv2d(x, weight, layer.bias, *sizes, conv.groups))


def whole_by_torch(
    x: Tensor, first: pair.Convolved, second: pair.Convolved, residual: Tensor | None, relu: bool
) -> Tensor:
    z = by_torch(F.relu(by_torch(x, first)), second)
    z = z if residual is None else z + residual
    return F.relu(z) if relu else z


def by_two_calls(
    x: Tensor, first: pair.Convolved, second: pair.Convolved, residual: Tensor | None, relu: bool
) -> Tensor:
    z = single.conv_norm(first.norm, x, *first[:4], relu=True)
    return single.conv_norm(second.norm, z, *second[:4], residual=residual, relu=relu)


def by_pair(x: Tensor, first: pair.Convolved, second: pair.Convolved, residual: Tensor | None, relu: bool) -> Tensor:
    assert pair.supports(x, first, second)
    return pair.conv_norm_pair(x, first, second, residual=residual, relu=relu)


class Problem:
    """A pair of layers, its input and residual, and everything that a step with them gives."""

    def __init__(self, name: str, residual: str = "own") -> None:
        conv1, conv2, shape, _ = PAIRS[name]
        self.first, self.second, self.x = convolved(conv1), convolved(conv2), torch.randn(shape)
        out = self.second.layer.out_shape(self.first.layer.out_shape(shape))
        self.residual = torch.randn(out) if residual == "own" else None
        self.same, self.direction = residual == "x", torch.randn(out)

    def results(self, function: Callable[..., Tensor], relu: bool, dtype: torch.dtype = torch.float32) -> list[Tensor]:
        """z, all gradients and all running statistics."""
        first, second = leaves(self.first, dtype), leaves(self.second, dtype)
        x = self.x.to(dtype, copy=True).requires_grad_()
        residual = None if self.residual is None else self.residual.to(dtype, copy=True).requires_grad_()
        z = function(x, first, second, x if self.same else residual, relu)
        z.backward(self.direction.to(dtype))
        values = [z.detach(), x.grad, *([] if residual is None else [residual.grad])]
        for layer in (first, second):
            norm = layer.norm
            values += [layer.theta.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]
            values.append(norm.num_batches_tracked)
        return values


def assert_near(values: list[Tensor], expected: list[Tensor], tolerance: float = 5e-5) -> None:
    for value, right in zip(values, expected, strict=True):
        right = right.detach().double()
        torch.testing.assert_close(
            value.detach().double(), right, rtol=1e-4, atol=tolerance * float(right.abs().max() + 1e-3)
        )


def residuals_of(name: str) -> tuple[str, ...]:
    return RESIDUALS if PAIRS[name][3] else RESIDUALS[:2]


CASES = [(name, residual) for name in PAIRS for residual in residuals_of(name)]


# ---- the same numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize(("name", "residual"), CASES)
def test_values_gradients_and_running_statistics(name, residual, relu, count, threads) -> None:
    threads(count)
    problem = Problem(name, residual)
    values = problem.results(by_pair, relu)
    assert_near(values, problem.results(whole_by_torch, relu, torch.float64))
    assert_near(values, problem.results(by_two_calls, relu))


@pytest.mark.parametrize("name", PAIRS)
def test_the_forward_pass_depends_on_no_thread_and_gradients_are_repeatable(name, threads) -> None:
    problem, results = Problem(name), []
    for count in (1, 2, 2, 3):
        threads(count)
        results.append(problem.results(by_pair, True))
    assert all(torch.equal(results[0][0], other[0]) for other in results[1:])
    assert all(torch.equal(a, b) for a, b in zip(results[1], results[2], strict=True))


def test_the_sums_of_the_inner_norm_are_exact_where_its_weight_is_small() -> None:
    """y cannot be had from z there: z is nearly the bias. So the sums are taken from y."""
    problem = Problem("plain")
    nn.init.uniform_(problem.first.norm.weight, 1e-6, 2e-6)
    nn.init.zeros_(problem.first.norm.weight[:2])
    nn.init.constant_(problem.first.norm.bias, 3.0)
    values = problem.results(by_pair, True)
    assert_near(values[3:6], problem.results(by_two_calls, True)[3:6], 1e-5)


def test_nan_passes_no_relu_backward_and_is_seen_forward() -> None:
    problem = Problem("plain")
    problem.x[0, 0, 4, 4] = torch.nan
    values, expected = (problem.results(function, True) for function in (by_pair, by_two_calls))
    for value, right in zip(values, expected, strict=True):
        assert torch.equal(value.isnan(), right.isnan())


@pytest.mark.parametrize("same", [False, True])
def test_gradients_of_gradients(same) -> None:
    problem = Problem("plain", "x" if same else "own")

    def slopes(function: Callable[..., Tensor], dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
        first, second = leaves(problem.first, dtype), leaves(problem.second, dtype)
        x = problem.x.to(dtype, copy=True).requires_grad_()
        given = [x, *(v for layer in (first, second) for v in (layer.theta, layer.norm.weight, layer.norm.bias))]
        residual = x if same else problem.residual.to(dtype)
        z = function(x, first, second, residual, True)
        once = torch.autograd.grad(z.square().sum(), given, create_graph=True)
        return list(once), list(torch.autograd.grad(once[1].square().sum(), given[:3]))

    for values, expected in zip(slopes(by_pair, torch.float32), slopes(whole_by_torch, torch.float64), strict=True):
        assert_near(values, expected, 1e-3)


def test_opcheck() -> None:
    problem = Problem("plain")
    layers = (*leaves(problem.first).arguments(), *leaves(problem.second).arguments())
    arguments = [list(value) if isinstance(value, Convolution) else value for value in layers]
    x = problem.x.clone().requires_grad_()
    torch.library.opcheck(pair.sparse_norm_pair.op, (x, *arguments, problem.residual, False, True))


# ---- networks --------------------------------------------------------------------------------------------------------


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_known", ByTensor())
    monkeypatch.setattr(links, "LEAST_NUMBERS", 0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each use of the operator."""
    seen: list[int] = []
    whole = pair.conv_norm_pair

    def counted(*args, **kwargs) -> Tensor:
        seen.append(1)
        return whole(*args, **kwargs)

    monkeypatch.setattr(pair, "conv_norm_pair", counted)
    return seen


def block(stride: int = 1) -> tuple[nn.Module, Tensor]:
    return ssvi.to_bnn(BasicBlock(8, 8 * stride, stride), 0.2, point=True, seed=0), torch.randn(4, 8, 9, 8)


def gradients(bnn: nn.Module, x: Tensor) -> list[Tensor]:
    x = x.clone().requires_grad_()
    bnn.zero_grad()
    bnn(x).pow(3).sum().backward()
    return [x.grad, *(p.grad.clone() for p in bnn.parameters() if p.grad is not None)]


@pytest.mark.parametrize("stride", [1, 2])
def test_a_chain_of_blocks_has_the_gradients_of_the_dense_kernel(stride, calls, of_any_size) -> None:
    (one, x), (two, _), (three, _) = block(), block(), block(stride)
    net = nn.Sequential(one, two, three)
    values = gradients(net, x)
    assert len(calls) == 3
    with kernels.use("dense"):
        assert_near(values, gradients(net, x), 1e-3)


def test_a_block_keeps_neither_its_input_between_the_layers_nor_more_than_before(of_any_size) -> None:
    bnn, x = block(stride=2)
    seen: dict[int, tuple[int, ...]] = {}

    def see(value: Tensor) -> Tensor:
        if value.dim() == 4 and value.untyped_storage().nbytes() >= value.numel() * value.element_size():
            seen[value.data_ptr()] = tuple(value.shape)
        return value

    with torch.autograd.graph.saved_tensors_hooks(see, lambda value: value):
        z = bnn(x)
    assert sorted(seen.values()) == [(4, 8, 9, 8)] + 3 * [(4, 16, 5, 4)]
    z.sum().backward()


def test_without_gradients_the_statistics_are_tracked(calls) -> None:
    bnn, x = block()
    other = copy.deepcopy(bnn)
    with torch.no_grad():
        value = bnn(x)
        with kernels.use("dense"):
            assert_near([value, bnn.bn1.running_var], [other(x), other.bn1.running_var])
    assert len(calls) == 1


def test_frozen_layers_get_no_gradient(calls) -> None:
    bnn, x = block()
    for parameter in (*bnn.conv1.parameters(), *bnn.bn1.parameters()):
        parameter.requires_grad_(False)
    bnn(x).sum().backward()
    assert bnn.bn1.weight.grad is None
    assert bnn.conv2.posterior.mu.grad is not None
    assert len(calls) == 1


# ---- where two calls serve -------------------------------------------------------------------------------------------

OBSERVERS = ("hook", "pre-hook", "hook of a norm", "evaluation", "one norm in evaluation", "one row", "random",
             "reflected", "dense", "subclass")  # fmt: skip


def changed(observer: str) -> tuple[nn.Module, Tensor]:
    """A block that the operator cannot serve."""
    bnn, x = block()
    if observer == "random":
        bnn = ssvi.to_bnn(BasicBlock(8, 8, 1), 0.2)
    if observer == "hook":
        bnn.conv2.register_forward_hook(lambda *_: None)
    if observer == "pre-hook":
        bnn.conv1.register_forward_pre_hook(lambda *_: None)
    if observer == "hook of a norm":
        bnn.bn1.register_forward_hook(lambda *_: None)
    if observer == "evaluation":
        bnn.eval()
    if observer == "one norm in evaluation":
        bnn.bn2.eval()
    if observer == "reflected":
        bnn.conv2.padding_mode = "reflect"
    if observer == "subclass":
        bnn.conv2.__class__ = type("Own", (type(bnn.conv2),), {})
    return bnn, x[:, :, :1] if observer == "one row" else x


@pytest.mark.parametrize("observer", OBSERVERS)
def test_two_calls_serve_where_something_is_observed_or_not_ours(observer, calls) -> None:
    bnn, x = changed(observer)
    with kernels.use("dense" if observer == "dense" else "auto"):
        bnn(x).sum().backward()
    assert calls == []


def test_padding_that_is_done_first_is_served_in_front_only(calls) -> None:
    bnn, x = block()
    bnn.conv1.padding_mode = "reflect"
    values = gradients(bnn, x)
    assert len(calls) == 1
    with kernels.use("dense"):
        assert_near(values, gradients(bnn, x), 1e-3)


@pytest.mark.parametrize("layer", [nn.Conv2d(6, 6, 3, stride=2, padding=1), nn.Conv2d(4, 6, 3, padding=1)])
def test_a_stride_or_other_channels_in_the_second_layer_are_left_to_two_calls(layer) -> None:
    problem = Problem("plain")
    assert not pair.supports(problem.x, problem.first, convolved(layer))
    assert not pair.supports(problem.x[:0], problem.first, problem.second)


def test_a_listener_of_an_update_is_told(calls) -> None:
    bnn, x = block()
    optimizer = torch.optim.SGD(bnn.parameters(), 1e-3)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.3)
    for _ in range(4):
        bnn(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        subspace.step()
    assert 0 < len(calls) < 4


def test_torch_func_is_left_to_torch(calls) -> None:
    bnn, x = block()
    parameters = {name: value.detach() for name, value in bnn.named_parameters()}
    for norm in (bnn.bn1, bnn.bn2):
        norm.track_running_stats, norm.running_mean, norm.running_var = False, None, None
    torch.func.grad(lambda given: torch.func.functional_call(bnn, given, (x,)).sum())(parameters)
    assert calls == []


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_block_gives_the_same_numbers(calls) -> None:
    torch._dynamo.reset()
    bnn, x = block()
    expected = gradients(bnn, x)
    seen = len(calls)
    assert_near(gradients(torch.compile(bnn, backend="aot_eager"), x), expected, 1e-4)
    assert len(calls) == seen == 1


def test_a_function_of_ones_own_may_use_it_without_a_residual() -> None:
    bnn, x = block()
    layers = (bnn.conv1, bnn.bn1, bnn.conv2, bnn.bn2)
    z = conv_norm_pair(*layers, x, relu=False)
    expected = conv_norm(*layers[2:], conv_norm(*layers[:2], x, relu=True))
    assert_near([z.detach()], [expected.detach()])
