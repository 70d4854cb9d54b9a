"""Second derivatives and torch.func with the native kernels: torch's operators take over, and the numbers are the same."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from native_layers import CONV, LINEAR, images, parameters
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

import ssvi
from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import batchnorm, ops

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
LAYER = Convolution.of(CONV)


class Small(nn.Module):
    """A convolution, a norm and a linear layer, smooth in between."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(ssvi.kernels.batch_norm(self.norm, self.conv(x)).tanh().flatten(1))


def network(**settings: object) -> nn.Module:
    torch.manual_seed(0)
    return ssvi.to_bnn(Small(), 0.3, sigma_init=0.2, **settings)


def penalty_gradients(bnn: nn.Module, x: Tensor) -> list[Tensor]:
    """d/dphi of |dl/dx|^2, the gradient penalty."""
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(bnn(x).square().sum(), x, create_graph=True)
    slope.square().sum().backward()
    return [p.grad for p in bnn.parameters() if p.grad is not None]


@pytest.mark.parametrize("kernel", ["native", "auto"])
def test_a_gradient_penalty_is_that_of_the_dense_kernel(kernel):
    bnn, x = network(), torch.randn(5, 2, 4, 4)
    exact = copy.deepcopy(bnn).double()
    with ssvi.kernels.use(kernel), ssvi.at_mean(bnn):
        assert ssvi.kernels.chosen(x, bnn.conv.geometry, bnn.conv.posterior.s) == "native"
        got = penalty_gradients(bnn, x)
    with ssvi.kernels.use("dense"), ssvi.at_mean(exact):
        want = penalty_gradients(exact, x.double())
    assert len(want) == 6  # mu and bias of both layers, weight and bias of the norm
    for value, reference in zip(got, want, strict=True):
        torch.testing.assert_close(value.double(), reference, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("geometry", [CONV, LINEAR], ids=["conv", "linear"])
def test_second_derivatives_of_a_draw_are_those_of_the_formula_with_its_noise(geometry: Geometry):
    mu, sigma2, index = parameters(geometry)
    x = images(3, geometry=geometry).detach()
    x = (x if geometry.ndim else x[:, :, None, None]).requires_grad_()
    layer, seed = Convolution.of(geometry), torch.tensor([7])
    y, _ = ops.sparse_draw(x, mu, sigma2, index, None, seed, layer)
    as_conv = Geometry((*geometry.shape, 1, 1), (1, 1), (0, 0), (1, 1)) if geometry.ndim == 0 else geometry
    wide = [v.detach().double().requires_grad_() for v in (x, mu, sigma2)]
    mean, variance = dense.moments(*wide, index, as_conv)
    std = variance.clamp_min(dense.VARIANCE_FLOOR).sqrt()
    eps = ((y - mean) / std * (variance > 0)).detach()
    results = []
    for inputs, output in (((x, mu, sigma2), y), (tuple(wide), mean + std * eps)):
        first = torch.autograd.grad(output.square().sum(), inputs, create_graph=True)
        results.append(torch.autograd.grad(sum(g.square().sum() for g in first), inputs))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=5e-3, atol=2e-3 * want.abs().max().item())


def test_a_first_gradient_is_native_to_the_bit():
    mu, _, index = parameters(CONV)
    x = images()
    y = ops.sparse_fixed(x, mu, index, None, LAYER)
    grad_y = torch.randn_like(y)
    expected = ops.sparse_fixed_backward(grad_y, x.detach(), mu.detach(), index, LAYER, True)
    got = torch.autograd.grad(y, (x, mu), grad_y, retain_graph=True)
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
    again = torch.autograd.grad(y, (x, mu), grad_y, create_graph=True)
    assert all(g.requires_grad for g in again)
    for value, reference in zip(again, expected, strict=True):
        torch.testing.assert_close(value, reference, rtol=1e-4, atol=1e-4)


def test_an_input_that_was_computed_from_the_weights():
    """y = theta (theta x): the gradient by one path must not hold that by the other."""
    geometry = Geometry((6, 6))
    mu, _, index = parameters(geometry)
    x = torch.randn(3, 6)

    def slopes(kernel, theta):
        y = kernel.fixed(kernel.fixed(x.to(theta), theta, index, geometry), theta, index, geometry)
        (slope,) = torch.autograd.grad(y.pow(3).sum(), theta, create_graph=True)
        return slope, *torch.autograd.grad(slope.square().sum(), theta)

    for got, want in zip(slopes(native, mu), slopes(dense, mu.detach().double().requires_grad_()), strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-4 * want.abs().max().item())


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_second_derivatives_of_batch_norm(affine, relu):
    norm, x, residual = nn.BatchNorm2d(3, affine=affine), torch.randn(4, 3, 2, 2), torch.randn(4, 3, 2, 2)
    results = []
    for kernel, dtype in ((batchnorm, torch.float32), (dense, torch.float64)):
        inputs = [v.detach().to(dtype).requires_grad_() for v in (x, residual)]
        same = copy.deepcopy(norm).to(dtype)
        y = kernel.batch_norm(same, inputs[0], residual=inputs[1], relu=relu)
        first = torch.autograd.grad(y.pow(3).sum(), [*inputs, *same.parameters()], create_graph=True)
        results.append(torch.autograd.grad(sum(g.square().sum() for g in first), [*inputs, *same.parameters()]))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got.double(), want, rtol=1e-3, atol=1e-4 * want.abs().max().item())


def test_the_gradient_of_a_bias_alone_is_differentiated():
    """All other parameters are frozen."""
    bnn, x, results = network(), torch.randn(5, 2, 4, 4), []
    for name, parameter in bnn.named_parameters():
        parameter.requires_grad_(name in ("head.bias", "norm.bias"))
    for kernel in ("native", "dense"):
        with ssvi.kernels.use(kernel), ssvi.at_mean(bnn):
            biases = [bnn.head.bias, bnn.norm.bias]
            first = torch.autograd.grad(bnn(x).pow(3).sum(), biases, create_graph=True)
            results.append([*first, *torch.autograd.grad(sum(g.square().sum() for g in first), biases)])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4 * want.abs().max().item())


def loss_of(bnn):
    buffers = dict(bnn.named_buffers())

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(bnn, (parameters, buffers), (x[None],)), y[None])

    return loss


def test_gradients_of_single_examples():
    bnn, x, y = network().eval(), torch.randn(5, 2, 4, 4), torch.tensor([0, 1, 2, 0, 1])
    parameters, loss = dict(bnn.named_parameters()), loss_of(bnn)
    with ssvi.at_mean(bnn):
        together = vmap(grad(loss), (None, 0, 0))(parameters, x, y)
        for n in range(5):
            bnn.zero_grad()
            F.cross_entropy(bnn(x[n : n + 1]), y[n : n + 1]).backward()
            for name, parameter in bnn.named_parameters():
                alone = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                torch.testing.assert_close(together[name][n], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of its forward-mode gradients
def test_jacobians_and_the_hessian():
    bnn, x = network().eval(), torch.randn(2, 2, 4, 4)
    parameters, loss, y = dict(bnn.named_parameters()), loss_of(bnn), torch.tensor(1)
    with ssvi.at_mean(bnn):
        by_rows = torch.autograd.functional.jacobian(bnn, x)  # the native kernels
        torch.testing.assert_close(jacrev(bnn)(x), by_rows, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(jacfwd(bnn)(x), by_rows, rtol=1e-4, atol=1e-5)
        direction = torch.randn_like(x)
        _, along = jvp(bnn, (x,), (direction,))
        torch.testing.assert_close(along, (by_rows * direction).flatten(2).sum(-1), rtol=1e-4, atol=1e-5)
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(bnn(forward_ad.make_dual(x, direction))).tangent
        torch.testing.assert_close(tangent, along)
        at_mu = lambda mu: loss({**parameters, "head.posterior.mu": mu}, x[0], y)  # noqa: E731
        curvature = hessian(at_mu)(parameters["head.posterior.mu"])
        by_backward = torch.autograd.functional.hessian(at_mu, bnn.head.posterior.mu)
        torch.testing.assert_close(curvature, by_backward, rtol=1e-3, atol=1e-5)
    batched = torch.autograd.grad(bnn(x := x.requires_grad_()), x, torch.eye(6).view(6, 2, 3), is_grads_batched=True)
    assert batched[0].shape == (6, *x.shape)


def test_noise_inside_vmap_is_what_randomness_says():
    bnn, x = network().eval(), torch.randn(1, 2, 4, 4).expand(3, 1, 2, 4, 4)
    with torch.no_grad():
        own = vmap(bnn, randomness="different")(x)
        assert not torch.allclose(own[0], own[1])
        same = vmap(bnn, randomness="same")(x)
        torch.testing.assert_close(same[0], same[1])
        with pytest.raises(RuntimeError, match=r'randomness="different".*ssvi.at_mean'):
            vmap(bnn)(x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of its forward-mode gradients
def test_a_draw_has_the_same_slope_forwards_and_backwards():
    bnn, x = network(), torch.randn(2, 2, 4, 4)
    bnn.norm.eval()  # the layers are in training, where sigma is kept in its range
    direction, weights = torch.randn_like(x), torch.randn(2, 3)
    slopes = []
    for slope in (
        lambda: (jvp(bnn, (x,), (direction,))[1] * weights).sum(),
        lambda: (grad(lambda x: (bnn(x) * weights).sum())(x) * direction).sum(),
    ):
        torch.manual_seed(3)
        slopes.append(slope())
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-4)


def test_an_input_of_another_dtype_is_refused_with_both_names():
    bnn, x = network(), torch.randn(2, 2, 4, 4)
    with pytest.raises(
        TypeError, match=r"is torch.float32 and its weights are torch.float64: give it x.to\(torch.float64"
    ):
        bnn.double()(x)
    with pytest.raises(TypeError, match=r"is torch.float64 and its weights are torch.float32"), ssvi.at_mean(bnn):
        bnn.float()(x.double())
    with torch.autocast("cpu", torch.bfloat16):
        assert bnn(x.bfloat16()).dtype == torch.bfloat16
