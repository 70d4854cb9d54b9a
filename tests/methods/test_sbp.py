"""SBP: draws of its gates against their distribution function; pruning; digits."""

import copy
import math

import numpy as np
import pytest
import torch
from gated_networks import removed_and_accuracy, train_on_digits
from scipy import stats
from torch import nn

import ssvi
from ssvi.math.log_uniform import lognormal_kl
from ssvi.methods import sbp
from ssvi.nn.gates import gates
from ssvi.nn.models import ResNet, lenet, mlp
from ssvi.nn.reach import reachable


def tensors(pairs, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(pairs, dtype=dtype).unbind(1)


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
    of_draws = torch.autograd.grad(gate.draw(n).mean(0).sum(), [gate.mu, gate.log_sigma])
    for got, right in zip(of_draws, want, strict=True):
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
    want = sum(lognormal_kl(gate.mu, gate.log_sigma).sum() for _, gate in gates(net))
    torch.testing.assert_close(sbp.kl(net), want)
    loss = ssvi.ELBO(net, train_size=10, beta=0.5, kl=sbp.kl)(torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(loss, want * 0.05)
    _, gate = next(iter(gates(net)))
    closed = lognormal_kl(gate.mu, gate.log_sigma)[1]
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
    counts = [layer.posterior.s for _, layer in ssvi.layers(small)]
    assert counts == [first * 9, second * first * 9, third * second * 4, 10 * third]
    assert sum(counts) == sum(int(mask.sum()) for mask in reachable(small, x).values())


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
    torch.manual_seed(0)
    net = sbp.to_sbp(lenet(size=8, width=16))
    data = train_on_digits(net, sbp.kl, beta=lambda share: 3.0 * min(3 * share, 1.0), epochs=15)
    removed, accuracy = removed_and_accuracy(sbp.prune(net.eval(), data.normalise(data.test.x)), data)
    assert removed >= 0.5, removed
    assert accuracy >= 0.93, accuracy
