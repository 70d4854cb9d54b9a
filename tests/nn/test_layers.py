"""The layers against torch's own, and their moments against sampled weights."""

import pytest
import torch
from torch import nn

import ssvi
from ssvi import kernels
from ssvi.kernels import dense

CASES = {
    "linear": (lambda: nn.Linear(7, 5), (3, 7)),
    "linear without bias": (lambda: nn.Linear(7, 5, bias=False), (3, 7)),
    "linear on a sequence": (lambda: nn.Linear(7, 5), (2, 4, 7)),
    "linear on one vector": (lambda: nn.Linear(7, 5), (7,)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 9)),
    "conv1d reflect": (lambda: nn.Conv1d(4, 6, 3, padding=2, padding_mode="reflect"), (2, 4, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3), (2, 4, 7, 8)),
    "conv2d stride padding": (lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 3), padding=(1, 2)), (2, 4, 9, 8)),
    "conv2d dilation": (lambda: nn.Conv2d(4, 6, 3, dilation=(2, 1), padding=2), (2, 4, 9, 8)),
    "conv2d groups": (lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1, bias=False), (2, 4, 7, 8)),
    "conv2d depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4), (2, 4, 7, 8)),
    "conv2d same": (lambda: nn.Conv2d(4, 6, 3, padding="same"), (2, 4, 7, 8)),
    "conv2d same, even kernel": (lambda: nn.Conv2d(4, 6, (4, 3), padding="same", dilation=(1, 2)), (2, 4, 9, 8)),
    "conv2d valid": (lambda: nn.Conv2d(4, 6, 3, padding="valid"), (2, 4, 7, 8)),
    "conv2d reflect": (lambda: nn.Conv2d(4, 6, 3, padding=(1, 2), padding_mode="reflect"), (2, 4, 7, 8)),
    "conv2d replicate": (lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="replicate"), (2, 4, 7, 8)),
    "conv2d circular": (lambda: nn.Conv2d(4, 6, 3, padding=1, stride=2, padding_mode="circular"), (2, 4, 7, 8)),
    "conv2d unbatched": (lambda: nn.Conv2d(4, 6, 3, padding=1), (4, 7, 8)),
    "conv3d": (lambda: nn.Conv3d(2, 4, (1, 2, 3), stride=(1, 2, 1), padding=(0, 1, 1), groups=2), (2, 2, 4, 5, 6)),
    "conv transpose 1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1), (2, 4, 5)),
    "conv transpose 2d": (lambda: nn.ConvTranspose2d(4, 6, (3, 2), stride=(2, 1), dilation=(1, 2)), (2, 4, 5, 4)),
    "conv transpose groups": (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), (2, 4, 3, 4)),
    "conv transpose unbatched": (lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), (4, 3, 4)),
    "conv transpose 3d": (lambda: nn.ConvTranspose3d(2, 4, (1, 2, 3), stride=(1, 2, 1), groups=2), (2, 2, 2, 3, 3)),
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def converted(case, density=0.4) -> tuple[nn.Module, nn.Module, torch.Tensor]:
    """The torch layer with a sparse weight, the Bayesian layer with the same mu, and an input."""
    torch.manual_seed(0)
    make, shape = case
    bnn = ssvi.to_bnn(make().double(), density, sigma_init=0.3)
    with torch.no_grad():
        bnn.posterior.rho.add_(0.05 * torch.randn_like(bnn.posterior.rho))
    return ssvi.mean(bnn, dense=True), bnn, torch.randn(shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # torch's own, of the layer that we compare with
@cases
def test_at_mean_is_torch_on_the_dense_weight(case):
    plain, bnn, x = converted(case)
    assert type(plain) is bnn.plain
    want = plain(x)
    grad_y = torch.randn_like(want)
    want_x, want_w = torch.autograd.grad(want, [x, plain.weight], grad_y)
    with ssvi.at_mean(bnn):
        got = bnn(x)
    got_x, got_mu = torch.autograd.grad(got, [x, bnn.mu], grad_y)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(got_x, want_x)
    torch.testing.assert_close(got_mu, want_w.flatten()[bnn.index.long()])
    x_padded, geometry = bnn.padded(x.detach()), bnn.geometry
    torch.testing.assert_close(geometry.weight_gradient(x_padded, grad_y), want_w)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@cases
def test_variance_is_torch_on_squares(case):
    _, bnn, x = converted(case)
    _, variance = kernels.moments(bnn.padded(x), bnn.mu, bnn.sigma**2, bnn.index, bnn.geometry, bnn.bias)
    sigma2_layer = ssvi.mean(bnn, dense=True)
    with torch.no_grad():
        sigma2_layer.weight.copy_(bnn.posterior.dense(bnn.sigma**2))
        sigma2_layer.bias = None
    want = sigma2_layer(x**2)
    torch.testing.assert_close(variance, want)
    grad = torch.autograd.grad(variance.sum(), x, retain_graph=True)[0]
    torch.testing.assert_close(grad, torch.autograd.grad(want.sum(), x)[0])


@cases
def test_gradients_of_a_draw(case):
    """Finite differences in x, mu and sigma^2 with the noise held: what local reparameterisation promises."""
    _, bnn, x = converted(case)

    def draw(x, mu, sigma2):
        torch.manual_seed(1)
        return dense.draw(x, mu, sigma2, bnn.index, bnn.geometry)

    sigma2 = (bnn.sigma.detach() ** 2).requires_grad_()
    inputs = (bnn.padded(x).detach().requires_grad_(), bnn.mu, sigma2)
    assert torch.autograd.gradcheck(draw, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["linear", "conv2d stride padding", "conv1d reflect"])
def test_moments_are_those_of_sampled_weights(name):
    """The error of n samples falls as n^-1/2: a rate over a factor of 64, not one lucky seed."""
    _, bnn, x = converted(CASES[name])
    with torch.no_grad():
        mean, variance = kernels.moments(bnn.padded(x), bnn.mu, bnn.sigma**2, bnn.index, bnn.geometry, bnn.bias)
        generator = torch.Generator().manual_seed(2)
        draws = []
        for _ in range(4096):
            with ssvi.at_sample(bnn, generator):
                draws.append(bnn(x))
        sampled = torch.stack(draws)

    def errors(n: int) -> tuple[float, float]:
        chunks = sampled.view(-1, n, *mean.shape)
        of_mean = (chunks.mean(1) - mean).square().mean().sqrt()
        of_variance = (chunks.var(1) - variance).square().mean().sqrt()
        return of_mean.item(), of_variance.item()

    few, many = errors(16), errors(1024)  # the latter of four sets, or chance would rule it
    assert few[0] / many[0] == pytest.approx(8, rel=0.35)
    assert few[1] / many[1] == pytest.approx(8, rel=0.35)
    assert many[0] == pytest.approx((variance.mean() / 1024).sqrt().item(), rel=0.3)


def test_draws_have_the_moments_and_independent_noise():
    _, bnn, x = converted(CASES["linear"])
    with torch.no_grad():
        mean, variance = kernels.moments(x, bnn.mu, bnn.sigma**2, bnn.index, bnn.geometry, bnn.bias)
        torch.manual_seed(3)
        draws = torch.stack([bnn(x) for _ in range(4000)])
    live = variance > 0
    standard = ((draws - mean) / variance.clamp_min(1e-12).sqrt())[:, live]
    n = len(standard)
    assert standard.mean(0).abs().max() < 4 / n**0.5
    assert (standard.var(0) - 1).abs().max() < 6 / n**0.5
    correlation = standard.T.corrcoef() - torch.eye(int(live.sum()), dtype=x.dtype)
    assert correlation.abs().max() < 5 / n**0.5


def test_outputs_without_a_live_weight_are_quiet_and_have_finite_gradients():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(20, 50), 0.01)  # 10 weights for 50 outputs
    x = torch.randn(8, 20, requires_grad=True)
    y = bnn(x)
    empty = ~bnn.gamma.any(1)
    assert empty.sum() >= 40
    torch.testing.assert_close(y[:, empty], bnn.bias[empty].expand(8, -1))
    y.square().sum().backward()
    for tensor in (x, bnn.posterior.mu, bnn.posterior.rho):
        assert torch.isfinite(tensor.grad).all()
    assert bnn.posterior.rho.grad.abs().max() > 0


def test_weight_is_a_draw_for_code_that_reads_it():
    _, bnn, _ = converted(CASES["conv2d"])
    torch.manual_seed(0)
    draws = torch.stack([bnn.weight for _ in range(4000)])
    torch.testing.assert_close(draws.std(0), bnn.posterior.dense(bnn.sigma), rtol=0.1, atol=1e-6)
    assert (draws[:, ~bnn.gamma] == 0).all()
    with ssvi.at_mean(bnn):
        assert torch.equal(bnn.weight, bnn.posterior.dense(bnn.mu))


def test_at_mean_and_at_sample_end_even_after_an_error():
    bnn = ssvi.to_bnn(nn.Linear(4, 3), 0.5)
    x = torch.randn(2, 4)
    with pytest.raises((RuntimeError, ValueError), match=r"fit|mat"), ssvi.at_mean(bnn), ssvi.at_sample(bnn):
        bnn(torch.randn(2, 5))
    assert not torch.equal(bnn(x), bnn(x))
    with ssvi.at_mean(bnn):
        with ssvi.at_mean(bnn):
            pass
        assert torch.equal(bnn(x), bnn(x))
    with ssvi.at_sample(bnn):
        assert torch.equal(bnn(x), bnn(x))


def test_a_layer_says_how_sparse_it_is():
    bnn = ssvi.to_bnn(nn.Conv2d(64, 128, 3, bias=False), 0.05)
    assert repr(bnn) == "Conv2d(64, 128, kernel_size=(3, 3), stride=(1, 1), bias=False, s=3686/73728, 5.0%)"


def test_half_precision_keeps_its_variance():
    """sigma^2 = 1e-10 and x^2 = 1e6 are out of the range of float16; the standard deviation 1e-2 is not."""
    bnn = ssvi.to_bnn(nn.Linear(256, 4, bias=False), 1.0, sigma_init=1e-5, mu_init=0.0).half()
    y = bnn(torch.full((5000, 256), 1e3, dtype=torch.float16))
    assert y.dtype == torch.float16
    assert y.float().std().item() == pytest.approx(1e-5 * 1e3 * 16, rel=0.03)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bnn.float()(torch.ones(3, 256)).dtype == torch.bfloat16


def test_a_transposed_convolution_takes_the_size_of_its_output():
    _, bnn, x = converted(CASES["conv transpose 2d"])
    plain = ssvi.mean(bnn, dense=True)
    with ssvi.at_mean(bnn):
        for size in ([12, 6], [11, 6]):
            torch.testing.assert_close(bnn(x, output_size=size), plain(x, output_size=size))
    assert bnn.kernel == "dense"
    with kernels.use("dense"):
        assert ssvi.to_bnn(nn.Linear(8, 8), 0.5).kernel == "dense"


def test_the_package_gives_the_names_of_the_layers_and_hides_no_module():
    assert {"Linear", "Conv1d", "Conv2d", "Conv3d", "BayesLayer"} <= set(ssvi.nn.__all__)
    for name in ssvi.nn.__all__:
        assert getattr(ssvi.nn, name) in vars(ssvi.nn.layers).values()


@pytest.mark.parametrize("plain", [nn.Linear(4, 3), nn.Conv2d(2, 3, 3), nn.LSTM(4, 3)])
def test_initialising_after_the_conversion_is_refused(plain):
    bnn = ssvi.to_bnn(plain, 0.5)
    before = {name: value.clone() for name, value in bnn.state_dict().items()}
    with pytest.raises(RuntimeError, match=rf"of a Bayesian {type(plain).__name__} .*initialise the plain network"):
        bnn.reset_parameters()
    assert all(torch.equal(value, before[name]) for name, value in bnn.state_dict().items())
    ssvi.mean(bnn, dense=True).reset_parameters()
