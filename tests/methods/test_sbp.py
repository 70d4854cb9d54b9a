"""SBP: the truncated log-normal against quadrature, 120 digits and its own distribution function; pruning; digits."""

import copy
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import integrate, stats
from torch import nn

import ssvi
from ssvi import schedules
from ssvi.data import load
from ssvi.math import truncated_lognormal as law
from ssvi.methods import sbp
from ssvi.nn.gates import gates
from ssvi.nn.models import ResNet, lenet, mlp
from ssvi.nn.reach import reachable

MODERATE = list(itertools.product([-20.0, -19.0, -7.0, -1.0, 0.0, 0.3, 5.0], [-3.0, -1.5, 0.0, 0.7, 1.5, 3.0, 5.0]))
"""(mu, log sigma) that double-precision quadrature can do."""
MUS = [-20.0, -19.999, -10.0, -1.0, -1e-3, 0.0, 1e-6, 1e-3, 0.05, 0.1, 0.3, 1.0, 2.5, 5.0]
LOG_SIGMAS = [-20.0, -15.0, -10.0, -7.0, -6.9, -5.0, -3.5, -2.5, -1.8, -1.7, -1.0, 0.0, 0.5, 1.5, 3.0, 5.0]
WHOLE = list(itertools.product(MUS, LOG_SIGMAS))
TAIL = [(1.0, -3.5), (5.0, -2.0), (5.0, -20.0), (0.1, -6.0)]
"""More than 30 sigma beyond the upper bound."""


def tensors(pairs, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(pairs, dtype=dtype).unbind(1)


# The law, by quadrature.


def expectation(f, mu: float, log_sigma: float) -> float:
    """E f(x), x ~ N(mu, sigma^2) cut to [-20, 0], where it has any mass; the density is relative to its largest value."""
    sigma, peak = math.exp(log_sigma), min(mu, 0.0)
    width = min(sigma, sigma**2 / max(mu, 1e-300))
    lower = max(-20.0, peak - 40 * width)
    upper = min(0.0, peak + 40 * width)

    def density(x: float) -> float:
        return math.exp(-0.5 * ((x - mu) ** 2 - (peak - mu) ** 2) / sigma**2)

    def integral(g) -> float:
        points = [p for p in (peak - 5 * width, peak, peak + 5 * width) if lower < p < upper]
        return integrate.quad(g, lower, upper, points=points or None, epsabs=0, epsrel=1e-11, limit=500)[0]

    mass = integral(density)
    return integral(lambda x: density(x) / mass * f(x, density(x) / mass))


def test_kl_is_the_integral():
    want = [math.log(20) + expectation(lambda x, q: math.log(q) if q else 0.0, *pair) for pair in MODERATE]
    torch.testing.assert_close(law.kl(*tensors(MODERATE)), torch.tensor(want, dtype=torch.float64), rtol=0, atol=1e-9)


def test_mean_and_snr_are_the_integrals():
    for pair, mean, snr in zip(MODERATE, law.mean(*tensors(MODERATE)), law.snr(*tensors(MODERATE)), strict=True):
        first = expectation(lambda x, q: math.exp(x), *pair)
        variance = expectation(lambda x, q, first=first: (math.exp(x) - first) ** 2, *pair)
        assert mean.item() == pytest.approx(first, rel=1e-9)
        assert snr.item() == pytest.approx(first / math.sqrt(variance), rel=1e-6)


# The law in float32 over its whole range, against the textbook formulas in 120 digits.


def exact(mu: float, log_sigma: float) -> tuple[float, float, float]:
    """KL, mean and SNR."""
    mu, sigma = mp.mpf(mu), mp.exp(log_sigma)
    alpha, beta = (-20 - mu) / sigma, -mu / sigma

    def mass(k: int) -> mp.mpf:
        return (mp.erfc((k * sigma - beta) / mp.sqrt(2)) - mp.erfc((k * sigma - alpha) / mp.sqrt(2))) / 2

    Z = mass(0)
    ends = (alpha * mp.npdf(alpha) - beta * mp.npdf(beta)) / (2 * Z)
    kl = mp.log(20) - mp.log(sigma) - mp.log(Z) - mp.log(2 * mp.pi * mp.e) / 2 - ends
    first, second = (mp.exp(k * mu + k * k * sigma**2 / 2) * mass(k) / Z for k in (1, 2))
    return float(kl), float(first), float(first / mp.sqrt(second - first**2))


def test_float32_is_exact_over_the_whole_range():
    mu, log_sigma = tensors(WHOLE, torch.float32)
    with mp.workdps(120):
        want = torch.tensor([exact(m, s) for m, s in zip(mu.tolist(), log_sigma.tolist(), strict=True)]).float()
    torch.testing.assert_close(law.kl(mu, log_sigma), want[:, 0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(law.mean(mu, log_sigma), want[:, 1], rtol=1e-6, atol=0)
    torch.testing.assert_close(law.snr(mu, log_sigma), want[:, 2], rtol=5e-5, atol=0)


def test_values_and_gradients_are_finite_over_the_whole_range():
    u = torch.tensor([0.0, 1e-12, 0.01, 0.5, 0.99, 1.0]).view(-1, 1)
    for function in (law.kl, law.mean, law.snr, lambda *phi: law.quantile(u, *phi)):
        phi = [p.requires_grad_() for p in tensors(WHOLE, torch.float32)]
        value = function(*phi)
        assert torch.isfinite(value).all()
        assert all(torch.isfinite(g).all() for g in torch.autograd.grad(value.sum(), phi))


def test_kl_and_its_gradients_are_right_in_the_tail():
    """Almost exponential with mean sigma^2 / mu: KL = log 20 - log(sigma^2 / mu) - 1."""
    mu, log_sigma = (p.requires_grad_() for p in tensors([(5.0, -12.0), (2.0, -20.0), (1.0, -15.0)]))
    kl = law.kl(mu, log_sigma)
    torch.testing.assert_close(kl, math.log(20) - 2 * log_sigma + mu.log() - 1, rtol=0, atol=1e-8)
    by_mu, by_log_sigma = torch.autograd.grad(kl.sum(), [mu, log_sigma])
    torch.testing.assert_close(by_mu, 1 / mu, rtol=1e-7, atol=0)
    torch.testing.assert_close(by_log_sigma, torch.full_like(mu, -2.0), rtol=1e-7, atol=0)


@pytest.mark.parametrize(
    "pair", [(-19.5, -0.5), (-8.0, 1.0), (-0.3, -1.0), (0.0, -5.0), (0.5, -2.0), (2.0, 4.0), *TAIL]
)
def test_gradients(pair):
    phi = [p.requires_grad_() for p in tensors([pair])]
    u = torch.rand(7, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for function in (law.kl, law.mean, lambda *phi: law.quantile(u, *phi).log() * math.exp(-pair[1])):
        assert torch.autograd.gradcheck(function, phi, eps=1e-7, atol=1e-4, rtol=1e-4)


def test_the_two_forms_meet():
    sigma, u = 0.1, torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
    phi = tensors([(30 * sigma * (1 - 1e-9), math.log(sigma)), (30 * sigma * (1 + 1e-9), math.log(sigma))])
    for function in (law.kl, law.mean, lambda *phi: law.quantile(u, *phi).log(), law.snr):
        body, tail = function(*phi).unbind(-1)
        torch.testing.assert_close(body, tail, rtol=5e-5, atol=0)


# Draws.


def gate_of(*pairs, dtype=torch.float64) -> sbp.LogNormalGate:
    gate = sbp.LogNormalGate(len(pairs)).to(dtype)
    with torch.no_grad():
        for parameter, values in zip((gate.mu, gate.log_sigma), tensors(pairs, dtype), strict=True):
            parameter.copy_(values)
    return gate


LAWS = [(-20.0, 1.0), (-10.0, 0.0), (-0.5, 0.0), (0.0, -5.0), (0.0, 5.0), (1.0, -1.0), (0.9, -3.5), (5.0, -2.5)]


def test_draws_follow_the_distribution_function():
    gate, n = gate_of(*LAWS), 20_000
    torch.manual_seed(0)
    drawn = gate.draw(n).detach().log().numpy()
    generator = torch.Generator().manual_seed(1)
    sampled = torch.stack([gate.sample(generator) for _ in range(n // 10)]).detach().log().numpy()
    for i, (mu, log_sigma) in enumerate(LAWS):
        sigma = math.exp(log_sigma)
        cut = stats.truncnorm((-20 - mu) / sigma, -mu / sigma, loc=mu, scale=sigma)
        assert stats.kstest(drawn[:, i], cut.cdf).pvalue > 1e-3
        assert stats.kstest(sampled[:, i], cut.cdf).pvalue > 1e-3
        wrong = stats.truncnorm((-20 - mu) / sigma, -mu / sigma, loc=mu, scale=1.1 * sigma)
        if log_sigma < 2:  # where sigma = 148 the law is uniform
            assert stats.kstest(drawn[:, i], wrong.cdf).pvalue < 1e-3
    correlation = np.corrcoef(drawn.T) - np.eye(len(LAWS))
    assert abs(correlation).max() < 5 / math.sqrt(n)


def test_draws_have_the_moments():
    gate, n = gate_of(*LAWS[1:]), 200_000  # the first has an SNR of 0.04, which takes more draws
    torch.manual_seed(2)
    z = gate.draw(n).detach()
    error = z.std(0) / math.sqrt(n)
    assert ((z.mean(0) - gate.mean) / error).abs().max() < 4
    torch.testing.assert_close(z.mean(0) / z.std(0), gate.snr.detach(), rtol=0.05, atol=0)


def test_draws_carry_the_gradient_of_the_mean():
    """E d theta / d phi = d E theta / d phi: what reparameterisation promises, in both forms."""
    gate, n = gate_of((-3.0, 0.0), (-0.5, 0.5), (0.3, -1.0), (1.0, -3.5)), 100_000
    want = torch.autograd.grad(gate.mean.sum(), [gate.mu, gate.log_sigma])
    torch.manual_seed(3)
    found = torch.autograd.grad(gate.draw(n).mean(0).sum(), [gate.mu, gate.log_sigma])
    for got, right in zip(found, want, strict=True):
        torch.testing.assert_close(got, right, rtol=0.02, atol=0)


def test_gradients_of_a_draw_and_of_the_kl_reach_the_parameters():
    gate = gate_of((-0.4, -1.0), (0.2, 0.3))

    def draw(mu, log_sigma):
        torch.manual_seed(4)
        return torch.func.functional_call(gate, {"mu": mu, "log_sigma": log_sigma}, torch.ones(5, 2).double())

    assert torch.autograd.gradcheck(draw, (gate.mu, gate.log_sigma))


def test_parameters_are_clamped_where_they_are_used():
    beyond, border = gate_of((9.0, -30.0), (-50.0, 9.0)), gate_of((5.0, -20.0), (-20.0, 5.0))
    assert torch.equal(beyond.kl(), border.kl())
    assert torch.equal(beyond.snr, border.snr)


def test_a_gate_starts_open():
    gate = sbp.LogNormalGate(3)
    assert (gate.mu.tolist(), gate.log_sigma.tolist()) == ([0.0] * 3, [-5.0] * 3)
    assert 0.99 < gate.mean.min() <= gate.mean.max() < 1
    assert gate.draw(4).dtype == torch.float32
    assert gate.kl().item() == pytest.approx(
        3 * (math.log(20) + 5 + math.log(2) - 0.5 * math.log(2 * math.pi * math.e))
    )


# Networks.

NETS = {
    "mlp": (lambda: mlp(size=4, width=20), (1, 4, 4)),
    "lenet": (lambda: lenet(size=8, width=6), (1, 8, 8)),
    "residual": (lambda: ResNet((1, 1), classes=3, width=6), (3, 8, 8)),
}


def network(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network from `to_sbp` in float64 some of whose channels are noise, and inputs."""
    torch.manual_seed(0)
    make, shape = NETS[name]
    net = sbp.to_sbp(make().double()).eval()
    for _, gate in gates(net):
        nn.init.uniform_(gate.mu, -3, 1)
        nn.init.uniform_(gate.log_sigma, -3, 2)
    return net, torch.randn(9, *shape, dtype=torch.float64)


def test_kl_of_a_network_is_the_sum_over_its_gates():
    net, _ = network("lenet")
    want = sum(law.kl(gate.mu, gate.log_sigma).sum() for _, gate in gates(net))
    torch.testing.assert_close(sbp.kl(net), want)
    loss = ssvi.ELBO(net, train_size=10, beta=0.5, kl=sbp.kl)(torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(loss, want * 0.05)
    _, gate = next(iter(gates(net)))
    closed = law.kl(gate.mu, gate.log_sigma)[1]
    gate.alive[1] = False
    torch.testing.assert_close(sbp.kl(net), want - closed)
    with pytest.raises(ValueError, match="to_sbp"):
        sbp.kl(mlp())


@pytest.mark.parametrize("name", NETS)
def test_pruned_is_the_network_with_closed_gates(name):
    net, x = network(name)
    before = copy.deepcopy(net.state_dict())
    small = sbp.prune(net, x)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    for _, gate in gates(net):
        gate.alive.copy_(gate.snr >= 1)
        assert 0 < gate.alive.sum() < gate.channels
    with torch.no_grad(), ssvi.at_mean(net), ssvi.at_mean(small):
        torch.testing.assert_close(small(x), net(x))
    for seed in range(3):
        first, second = (torch.Generator().manual_seed(seed) for _ in range(2))
        with torch.no_grad(), ssvi.at_sample(net, first), ssvi.at_sample(small, second):
            torch.testing.assert_close(small(x), net(x))
    drawn = ssvi.predict_samples(small, x, 5)
    assert drawn.std(0).max() > 1e-4


def test_pruned_counts_by_hand():
    """A chain: layer i has (kept outputs) x (kept inputs) x kernel weights."""
    net, x = network("lenet")
    small = sbp.prune(net, x)
    first, second, third = (int((gate.snr >= 1).sum()) for _, gate in gates(net))
    found = [layer.posterior.s for _, layer in ssvi.layers(small)]
    assert found == [first * 9, second * first * 9, third * second * 4, 10 * third]
    assert sum(found) == sum(int(mask.sum()) for mask in reachable(small, x).values())


def test_the_best_channel_of_each_layer_stays():
    net, x = network("residual")
    small = sbp.prune(net, x, threshold=math.inf)
    for (_, gate), (_, whole) in zip(gates(small), gates(net), strict=True):
        assert gate.alive.nonzero().tolist() == [[whole.snr.argmax().item()]]
    assert small.conv1.posterior.s == 27
    assert torch.isfinite(ssvi.predict(small, x)).all()
    again = sbp.prune(small, x, threshold=0.0)
    assert [layer.posterior.s for _, layer in ssvi.layers(again)] == [
        layer.posterior.s for _, layer in ssvi.layers(small)
    ]


def test_digits():
    """More than half of the weights go, and hardly any accuracy. In a hurry: a high learning rate, and 3 KL."""
    data, epochs = load("digits"), 15
    torch.manual_seed(0)
    net = sbp.to_sbp(lenet(size=8, width=16))
    of_gates = [p for _, gate in gates(net) for p in gate.parameters()]
    rest = [p for p in net.parameters() if all(p is not q for q in of_gates)]
    optimizer = torch.optim.Adam([{"params": rest, "lr": 0.01}, {"params": of_gates, "lr": 0.1}])
    batches = data.batches(data.train, 64, drop_last=True)
    steps = epochs * len(batches)
    elbo = ssvi.ELBO(net, train_size=len(data.train), beta=schedules.linear(3.0, steps=steps // 3), kl=sbp.kl)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, schedules.cosine(1.0, steps=steps))
    for epoch in range(epochs):
        for x, y in batches.epoch(epoch):
            optimizer.zero_grad()
            elbo(F.cross_entropy(net(x), y)).backward()
            optimizer.step()
            decay.step()
    x, y = data.normalise(data.test.x), data.test.y
    small = sbp.prune(net.eval(), x)
    probs = ssvi.predict(small, x, 5, generator=torch.Generator().manual_seed(0))
    parts = [layer.posterior for _, layer in ssvi.layers(small)]
    removed = 1 - sum(p.s for p in parts) / sum(p.d for p in parts)
    accuracy = (probs.argmax(1) == y).double().mean().item()
    assert removed >= 0.5, removed
    assert accuracy >= 0.93, accuracy
