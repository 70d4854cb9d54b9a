"""The native kernels as part of torch: autograd, torch.compile, seeds, threads, processes, memory formats, bad input."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.native import ops
from ssvi.kernels.native.folded import sparse_fixed_norm

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))

CONV = Geometry((6, 4, 3, 3), (1, 1), (1, 1), (1, 1))
LINEAR = Geometry((10, 12))


@pytest.fixture(autouse=True)
def threads() -> Iterator[object]:
    before = torch.get_num_threads()
    torch.manual_seed(0)
    yield torch.set_num_threads
    torch.set_num_threads(before)


def parameters(geometry: Geometry, density: float = 0.3) -> tuple[Tensor, Tensor, Tensor]:
    s = round(density * geometry.d)
    index = torch.randperm(geometry.d)[:s].sort().values.int()
    return torch.randn(s).requires_grad_(), (torch.rand(s) + 0.1).requires_grad_(), index


def images(batch: int = 5, geometry: Geometry = CONV) -> Tensor:
    shape = (batch, geometry.shape[1] * geometry.groups, 9, 8) if geometry.ndim else (batch, geometry.shape[1])
    return torch.randn(shape).requires_grad_()


@pytest.mark.parametrize("geometry", [CONV, LINEAR], ids=["conv", "linear"])
def test_opcheck(geometry: Geometry) -> None:
    mu, sigma2, index = parameters(geometry)
    x = images(geometry=geometry).detach()
    x = (x if geometry.ndim else x[:, :, None, None]).requires_grad_()
    bias, seed, layer = torch.randn(geometry.shape[0], requires_grad=True), torch.tensor([7]), native.layer_of(geometry)
    torch.library.opcheck(ops.sparse_draw, (x, mu, sigma2, index, bias, seed, layer))
    torch.library.opcheck(ops.sparse_draw, (x.detach(), mu, sigma2, index, None, seed, layer))
    torch.library.opcheck(ops.sparse_fixed, (x, mu, index, bias, layer))
    y, t = ops.sparse_draw(x, mu, sigma2, index, bias, seed, layer)
    plain = [v.detach() for v in (y, x, t, mu, sigma2)]
    torch.library.opcheck(ops.sparse_draw_backward, (*plain, index, layer, True))
    torch.library.opcheck(ops.sparse_fixed_backward, (plain[0], plain[1], plain[3], index, layer, False))


def norm_behind(channels: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Weight, shift, mean and variance."""
    return torch.randn(channels), torch.randn(channels), torch.randn(channels), torch.rand(channels) + 0.1


def test_opcheck_of_a_norm_behind_a_layer() -> None:
    mu, _, index = parameters(CONV)
    args = (images().detach(), mu.detach(), index, torch.randn(6), native.layer_of(CONV))
    torch.library.opcheck(sparse_fixed_norm, (*args, torch.randn(5, 6, 9, 8), *norm_behind(6), 1e-5, True))
    torch.library.opcheck(sparse_fixed_norm, (*args, None, None, None, *norm_behind(6)[2:], 1e-5, False))


def test_a_norm_behind_a_layer_hides_no_bad_value_and_depends_on_no_thread(threads) -> None:
    mu, _, index = parameters(CONV)
    x, residual, norm = torch.randn(3, 4, 9, 8), torch.randn(3, 6, 9, 8), norm_behind(6)
    x[1, 2, 4, 3] = residual[0, 5, 0, 0] = float("nan")
    args = (mu.detach(), index, None, native.layer_of(CONV))
    plain = ops.sparse_fixed(x, *args)
    found = []
    for n in (1, 2, 3):
        threads(n)
        found.append(sparse_fixed_norm(x, *args, residual, *norm, 1e-5, True))
    assert torch.equal(found[0].isnan(), plain.isnan() | residual.isnan())
    assert all(torch.equal(found[0].nan_to_num(), y.nan_to_num()) for y in found[1:])


def test_a_norm_that_does_not_fit_is_named_and_a_residual_is_broadcast() -> None:
    mu, _, index = parameters(CONV)
    args, norm = (images().detach(), mu.detach(), index, None, native.layer_of(CONV)), norm_behind(6)
    with pytest.raises(ValueError, match="var: 6 float32 values are needed"):
        sparse_fixed_norm(*args, None, *norm[:3], torch.ones(5), 1e-5, True)
    with pytest.raises(ValueError, match="mean: 6 float32 values are needed"):
        sparse_fixed_norm(*args, None, *norm[:2], norm[2].double(), norm[3], 1e-5, True)
    with pytest.raises(RuntimeError, match="expand"):
        sparse_fixed_norm(*args, torch.randn(5, 6, 9, 7), *norm, 1e-5, True)
    wide, row = (sparse_fixed_norm(*args, r, *norm, 1e-5, True) for r in (torch.ones(5, 6, 9, 8), torch.ones(8)))
    assert torch.equal(wide, row)


@pytest.mark.parametrize("x", [images(), images()[:, :, :, ::2], images(1)[0]], ids=["batch", "strided", "one image"])
def test_public_functions_train(x: Tensor) -> None:
    mu, sigma2, index = parameters(CONV)
    bias = torch.randn(6, requires_grad=True)
    inputs = (x.detach().clone().requires_grad_(), mu, sigma2, bias)
    y = native.draw(inputs[0], mu, sigma2, index, CONV, bias)
    assert y.shape == dense.draw(x, mu, sigma2, index, CONV, bias).shape
    assert all(g.isfinite().all() and g.abs().sum() > 0 for g in torch.autograd.grad(y.square().sum(), inputs))

    theta = native.fixed(inputs[0], mu, index, CONV, bias)
    expected = dense.fixed(inputs[0], mu, index, CONV, bias)
    torch.testing.assert_close(theta, expected)
    used = (inputs[0], mu, bias)
    for got, want in zip(
        torch.autograd.grad(theta.square().sum(), used), torch.autograd.grad(expected.square().sum(), used), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_linear_of_any_rank() -> None:
    mu, sigma2, index = parameters(LINEAR)
    for shape in [(12,), (3, 12), (2, 3, 12), (0, 12)]:
        x = torch.randn(shape)
        assert native.draw(x, mu, sigma2, index, LINEAR).shape == (*shape[:-1], 10)
        torch.testing.assert_close(native.fixed(x, mu, index, LINEAR), dense.fixed(x, mu, index, LINEAR))


def test_empty_batch_has_zero_gradients() -> None:
    mu, sigma2, index = parameters(CONV)
    y = native.draw(torch.randn(0, 4, 9, 8), mu, sigma2, index, CONV)
    y.sum().backward()
    assert y.shape == (0, 6, 9, 8)
    assert not mu.grad.any()


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
def test_gradients_against_finite_differences(scale: float) -> None:
    """Central differences of the native forward pass itself, with the noise of one seed."""
    mu, sigma2, index = parameters(CONV)
    x, weights, layer = images(3), torch.randn(3, 6, 9, 8), native.layer_of(CONV)
    inputs = [(scale * x).detach().requires_grad_(), mu, sigma2]

    def loss(*values: Tensor) -> Tensor:
        y, _ = ops.sparse_draw(*values, index, None, torch.tensor([3]), layer)
        return (y.double() * weights).sum()

    for i, grad in enumerate(torch.autograd.grad(loss(*inputs), inputs)):
        direction = torch.randn_like(grad) * (inputs[i] if i == 2 else inputs[i].abs().mean())
        step = 1e-3
        ends = [
            loss(*(v + (sign * step * direction if k == i else 0) for k, v in enumerate(inputs))) for sign in (1, -1)
        ]
        along = (grad * direction).sum().double()
        torch.testing.assert_close((ends[0] - ends[1]) / (2 * step), along, rtol=1e-2, atol=1e-2 * along.abs().item())


def test_outputs_without_a_live_weight_are_silent() -> None:
    geometry = Geometry((4, 3))
    x, mu, sigma2 = torch.randn(9, 3, requires_grad=True), torch.ones(1), torch.ones(1, requires_grad=True)
    y = native.draw(x, mu, sigma2, torch.tensor([3], dtype=torch.int32), geometry, torch.arange(4.0))
    assert torch.equal(y[:, [0, 2, 3]], torch.tensor([0.0, 2.0, 3.0]).expand(9, 3))
    y.square().sum().backward()
    assert x.grad.isfinite().all()
    assert sigma2.grad.isfinite().all()
    assert not x.grad[:, 1:].any()
    zero = native.draw(torch.zeros(9, 3), mu, sigma2, torch.tensor([3], dtype=torch.int32), geometry)
    assert not zero.any()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("kernel", ["draw", "fixed"])
def test_bad_values_reach_exactly_the_outputs_with_a_live_weight_on_them(bad: float, kernel: str) -> None:
    mu, sigma2, index = parameters(CONV)
    x = torch.randn(3, 4, 9, 8)
    x[1, 2, 4, 3] = bad
    at = torch.zeros_like(x)
    at[1, 2, 4, 3] = 1
    touched = dense.fixed(at, torch.ones_like(mu), index, CONV) > 0
    y = native.draw(x, mu, sigma2, index, CONV) if kernel == "draw" else native.fixed(x, mu, index, CONV)
    assert torch.equal(~y.isfinite(), touched)
    assert touched.any()
    if kernel == "fixed" and bad != bad:  # the dense kernel has them there too, and wherever 0 * NaN is NaN
        assert (~dense.fixed(x, mu, index, CONV).isfinite() | ~touched).all()


def test_bad_gradients_are_not_hidden() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    y = native.draw(x, mu, sigma2, index, CONV)
    (y * torch.full_like(y, float("nan"))).sum().backward()
    assert x.grad.isnan().any()
    assert mu.grad.isnan().all()
    assert sigma2.grad.isnan().all()


@pytest.mark.parametrize("geometry", [CONV, LINEAR], ids=["conv", "linear"])
def test_threads_change_nothing_forward_and_repeat_backward(geometry: Geometry, threads) -> None:
    mu, sigma2, index = parameters(geometry)
    x, results = images(70, geometry), {}
    for n in (1, 2, 3, 2):
        threads(n)
        torch.manual_seed(5)
        y = native.draw(x, mu, sigma2, index, geometry)
        grads = torch.autograd.grad(y.square().sum(), (x, mu, sigma2))
        if n in results:
            assert all(map(torch.equal, grads, results[n][1]))
        results[n] = (y, grads)
    assert torch.equal(results[1][0], results[2][0])
    assert torch.equal(results[1][0], results[3][0])
    assert torch.equal(results[1][1][0], results[2][1][0])
    for one, two in zip(results[1][1], results[2][1], strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-3)


def test_seed_fixes_the_noise_and_every_call_has_its_own() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    torch.manual_seed(1)
    first, second = native.draw(x, mu, sigma2, index, CONV), native.draw(x, mu, sigma2, index, CONV)
    torch.manual_seed(1)
    assert torch.equal(first, native.draw(x, mu, sigma2, index, CONV))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("layout", ["channels_last", "expanded", "sliced"])
def test_memory_format_changes_nothing(layout: str) -> None:
    mu, sigma2, index = parameters(CONV)
    plain = images().detach()
    x = {
        "channels_last": plain.to(memory_format=torch.channels_last),
        "expanded": plain[:1].expand(5, -1, -1, -1),
        "sliced": torch.randn(5, 8, 11, 17)[:, ::2, 1:10, 1::2],
    }[layout]
    grad_y = torch.randn(5, 6, 9, 8).to(memory_format=torch.channels_last)
    results = []
    for value in (x, x.contiguous()):
        torch.manual_seed(2)
        value = value.detach().requires_grad_()
        y = native.draw(value, mu, sigma2, index, CONV)
        results.append((y, *torch.autograd.grad(y, (value, mu, sigma2), grad_y)))
    assert all(map(torch.equal, *results))


def test_a_changed_index_is_noticed() -> None:
    mu, _, index = parameters(CONV)
    x, other = images(), parameters(CONV)[2]
    before = native.fixed(x, mu, index, CONV)
    index.copy_(other)
    torch.testing.assert_close(native.fixed(x, mu, index, CONV), dense.fixed(x, mu, other, CONV))
    assert not torch.equal(before, native.fixed(x, mu, index, CONV))
    with torch.inference_mode():
        torch.testing.assert_close(native.fixed(x, mu, index.clone(), CONV), dense.fixed(x, mu, other, CONV))


def test_a_dead_index_leaves_nothing_behind() -> None:
    from ssvi.kernels.native import pattern

    mu, _, index = parameters(CONV)
    native.fixed(images(), mu, index, CONV)
    assert index in pattern._cache
    before = len(pattern._cache)
    del index
    assert len(pattern._cache) == before - 1


def test_compiled_equals_eager() -> None:
    """Two layers, noise and gradients included, with the same seed."""
    mu, sigma2, index = parameters(CONV)

    def step(x: Tensor, mu: Tensor, sigma2: Tensor) -> Tensor:
        y = native.draw(x, mu, sigma2, index, CONV).relu()
        return (y + native.draw(x, mu, sigma2, index, CONV)).square().mean()

    x, results = images(), []
    for f in (step, torch.compile(step, fullgraph=True, backend="aot_eager")):
        torch.manual_seed(4)
        loss = f(x, mu, sigma2)
        results.append((loss, *torch.autograd.grad(loss, (x, mu, sigma2))))
    for eager, compiled in zip(*results, strict=True):
        torch.testing.assert_close(compiled, eager)


def test_python_threads_do_not_disturb_each_other(threads) -> None:
    threads(2)
    mu, sigma2, index = parameters(CONV)
    inputs = [images(40).detach() for _ in range(4)]
    layer = native.layer_of(CONV)

    def work(i: int) -> Tensor:
        return ops.sparse_draw(inputs[i], mu, sigma2, index, None, torch.tensor([i]), layer)[0].detach()

    expected = [work(i) for i in range(4)]
    wrong: list[int] = []

    def repeat(i: int) -> None:
        wrong.extend(i for _ in range(20) if not torch.equal(work(i), expected[i]))

    workers = [threading.Thread(target=repeat, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _in_child(queue: multiprocessing.Queue, x: Tensor, mu: Tensor, index: Tensor) -> None:
    queue.put(native.fixed(x, mu, index, CONV).detach().numpy())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_works(threads) -> None:
    """After the parent has used the thread pool, which a fork does not copy."""
    threads(2)
    mu, _, index = parameters(CONV)
    x, mu = images(40).detach(), mu.detach()
    expected = native.fixed(x, mu, index, CONV)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue, x, mu, index))
    child.start()
    got = torch.from_numpy(queue.get(timeout=30))
    child.join(30)
    assert torch.equal(got, expected)


def test_only_what_is_supported() -> None:
    x = torch.randn(2, 4, 9, 8)
    assert native.supports(x, CONV)
    assert not native.supports(x.double(), CONV)
    assert not native.supports(x.to("meta"), CONV)
    assert not native.supports(x, Geometry((6, 4, 3), (1,), (1,), (1,)))


def test_wrong_arguments_are_errors() -> None:
    mu, sigma2, index = parameters(CONV)
    x = images()
    with pytest.raises(ValueError, match=r"x: shape \(5, 3, 9, 8\)"):
        native.draw(x[:, :3], mu, sigma2, index, CONV)
    with pytest.raises(ValueError, match="pixels are fewer than the kernel"):
        native.fixed(x, mu, index, Geometry((6, 4, 3, 3), (1, 1), (0, 0), (5, 5)))
    with pytest.raises(ValueError, match=r"sigma2: .* values for"):
        native.draw(x, mu, sigma2[1:], index, CONV)
    with pytest.raises(ValueError, match="bias: shape"):
        native.fixed(x, mu, index, CONV, torch.zeros(5))
    with pytest.raises(TypeError, match="mu: float32"):
        native.fixed(x, mu.double(), index, CONV)
    with pytest.raises(TypeError, match="index: int32"):
        native.fixed(x, mu, index.long(), CONV)
    for wrong in (index.flip(0), index - 1 - index[0], index + CONV.d):
        with pytest.raises(ValueError, match="positions must increase"):
            native.fixed(x, mu, wrong, CONV)
