"""Group VD: its gate against quadrature and moments, the network against w = z v, pruning, digits."""

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gated_networks import removed_and_accuracy, train_on_digits
from scipy import integrate, stats
from torch import nn

import ssvi
from ssvi.math import gaussian
from ssvi.math.log_uniform import normal_kl
from ssvi.methods import group_vd
from ssvi.nn.gates import gates
from ssvi.nn.models import ResNet, lenet, mlp


def gate_of(*pairs) -> group_vd.NormalGate:
    """A gate with these (mu, log sigma)."""
    gate = group_vd.NormalGate(len(pairs)).double()
    with torch.no_grad():
        for parameter, values in zip((gate.mu, gate.log_sigma), torch.tensor(pairs).unbind(1), strict=True):
            parameter.copy_(values)
    return gate


# The gate.


def exact_kl(log_alpha: float) -> float:
    """E_q log q - E_q log p with p = C / |z|, and C such that it vanishes for alpha = inf: by scale invariance the mean
    of log|1 / sqrt(alpha) + eps|, less that of log|eps|."""
    shift = math.exp(-log_alpha / 2)
    density = stats.norm(shift).pdf
    near = integrate.quad(lambda t: (density(math.exp(t)) + density(-math.exp(t))) * t * math.exp(t), -60, 0)[0]
    points = [p for p in (shift - 5, shift, shift + 5) if p > 1]
    far = integrate.quad(
        lambda z: (density(z) + density(-z)) * math.log(z), 1, shift + 40, points=points or None, limit=500
    )
    return near + far[0] + (np.euler_gamma + math.log(2)) / 2


@pytest.mark.parametrize("mu", [1.0, -0.3])
def test_kl_is_the_integral_up_to_the_approximations_error(mu):
    for log_alpha in range(-8, 9):
        gate = gate_of((mu, 0.5 * log_alpha + math.log(abs(mu))))
        torch.testing.assert_close(gate.log_alpha, torch.tensor([float(log_alpha)]).double(), rtol=0, atol=1e-5)
        assert gate.kl().item() == pytest.approx(exact_kl(log_alpha), abs=0.01)


def test_kl_is_constant_where_all_is_noise():
    gate = gate_of((0.0, 1.0), (1e-3, 5.0))
    grads = torch.autograd.grad(gate.kl(), [gate.mu, gate.log_sigma])
    assert all((grad == 0).all() for grad in grads)
    assert gate.kl().item() < 1e-3


def test_gradients():
    gate = gate_of((1.0, -4.5), (-0.4, 0.3), (1e-3, -6.0))

    def total(mu, log_sigma):
        torch.manual_seed(0)
        copied = copy.copy(gate)
        copied._parameters = {"mu": mu, "log_sigma": log_sigma}
        return copied.kl(), copied(torch.ones(4, 3).double())

    assert torch.autograd.gradcheck(total, (gate.mu, gate.log_sigma), eps=1e-8, atol=1e-4)


def test_draws_are_normal_with_a_z_for_each_example_and_channel():
    gate, n = gate_of((1.0, -2.0), (-0.5, 1.0), (0.0, 0.0)), 20_000
    torch.manual_seed(1)
    drawn = gate.draw(n).detach().numpy()
    generator = torch.Generator().manual_seed(2)
    sampled = torch.stack([gate.sample(generator) for _ in range(2_000)]).detach().numpy()
    for i in range(3):
        law = stats.norm(gate.mean[i].item(), gate.log_sigma[i].exp().item())
        assert stats.kstest(drawn[:, i], law.cdf).pvalue > 1e-3
        assert stats.kstest(sampled[:, i], law.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 5 / math.sqrt(n)


def test_a_negative_z_passes_what_the_relu_had_blocked():
    gate, y = gate_of((-2.0, -3.0)), torch.tensor([[3.0], [-3.0]]).double()
    with ssvi.at_mean(gate):
        assert F.relu(gate(y)).flatten().tolist() == [0.0, 6.0]


# Networks.

NETS = {
    "mlp": (lambda: mlp(size=4, width=20), (1, 4, 4)),
    "lenet": (lambda: lenet(size=8, width=6), (1, 8, 8)),
    "residual": (lambda: ResNet((1, 1), classes=3, width=6), (3, 8, 8)),
}


def network(name: str) -> tuple[nn.Module, torch.Tensor]:
    """A network from `to_group_vd` in float64 some of whose channels are noise, and inputs."""
    torch.manual_seed(0)
    make, shape = NETS[name]
    net = group_vd.to_group_vd(make().double(), sigma_init=0.05).eval()
    for _, gate in gates(net):
        nn.init.uniform_(gate.mu, -1, 2)
        nn.init.uniform_(gate.log_sigma, -1, 3)
    return net, torch.randn(9, *shape, dtype=torch.float64)


def test_it_starts_as_the_paper_does():
    plain = mlp(size=4, width=5)
    net = group_vd.to_group_vd(plain)
    for _, gate in gates(net):
        assert gate.log_alpha.tolist() == pytest.approx([-9.0] * 5, abs=1e-5)
    for name, layer in ssvi.layers(net):
        assert layer.posterior.prior_sigma == 1.0
        assert layer.density == 1.0
        torch.testing.assert_close(layer.sigma.log(), torch.full_like(layer.mu, -4.5))
        torch.testing.assert_close(layer.mu, plain.get_submodule(name).weight.detach().flatten())


def test_kl_is_that_of_weights_and_gates():
    net, _ = network("lenet")
    weights = sum(gaussian.kl(layer.mu, layer.sigma, 1.0).sum() for _, layer in ssvi.layers(net))
    of_gates = sum(normal_kl(gate.log_alpha).sum() for _, gate in gates(net))
    torch.testing.assert_close(group_vd.kl(net), weights + of_gates)
    loss = ssvi.ELBO(net, train_size=10, beta=0.5, kl=group_vd.kl)(torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(loss, 0.05 * (weights + of_gates))
    _, gate = next(iter(gates(net)))
    gate.alive[2] = False
    torch.testing.assert_close(group_vd.kl(net), weights + of_gates - normal_kl(gate.log_alpha[2]))
    with pytest.raises(ValueError, match="to_group_vd"):
        group_vd.kl(ssvi.to_bnn(mlp(), 1.0))


def test_one_draw_is_a_plain_network_with_weights_z_v():
    net, x = network("mlp")
    with torch.no_grad(), ssvi.at_sample(net, torch.Generator().manual_seed(3)):
        y = x.flatten(1)
        for module in net:
            if isinstance(module, nn.Linear):
                z = module.gate.theta.unsqueeze(1) if hasattr(module, "gate") else torch.ones(1, 1).double()
                v = module.posterior.theta.view(module.posterior.shape)
                y = F.linear(y, z * v, z.squeeze(1) * module.bias)
            elif isinstance(module, nn.ReLU):
                y = F.relu(y)
        torch.testing.assert_close(net(x), y)


@pytest.mark.parametrize("name", NETS)
def test_pruned_is_the_network_with_closed_gates(name):
    net, x = network(name)
    before = copy.deepcopy(net.state_dict())
    small = group_vd.prune(net, x, threshold=2.0)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    for _, gate in gates(net):
        gate.alive.copy_(gate.log_alpha <= 2.0)
        assert 0 < gate.alive.sum() < gate.channels
    with torch.no_grad(), ssvi.at_mean(net), ssvi.at_mean(small):
        torch.testing.assert_close(small(x), net(x))
    with torch.no_grad(), ssvi.at_sample(net, torch.Generator().manual_seed(4)), ssvi.at_sample(small):
        hold_as(small, net)
        torch.testing.assert_close(small(x), net(x))
    assert ssvi.predict_samples(small, x, 5).std(0).max() > 1e-3


def hold_as(small: nn.Module, net: nn.Module) -> None:
    """The draw that `net` is held at, for the weights that are left; its own draw would use up fewer random numbers."""
    for (_, gate), (_, whole) in zip(gates(small), gates(net), strict=True):
        gate.pin(whole.pinned)
    for name, layer in ssvi.layers(small):
        whole = net.get_submodule(name).posterior
        layer.posterior.pin(whole.pinned[torch.isin(whole.index, layer.index)])


def test_pruned_counts_by_hand():
    net, x = network("lenet")
    small = group_vd.prune(net, x, threshold=2.0)
    first, second, third = (int((gate.log_alpha <= 2).sum()) for _, gate in gates(net))
    pruned = {name: layer.posterior for name, layer in ssvi.layers(small)}
    assert [p.s for p in pruned.values()] == [first * 9, second * first * 9, third * second * 4, 10 * third]
    for name, posterior in pruned.items():
        whole = net.get_submodule(name).posterior
        kept = torch.isin(whole.index, posterior.index)
        assert torch.equal(whole.mu[kept], posterior.mu)
        assert torch.equal(whole.sigma[kept], posterior.sigma)


def test_the_best_channel_of_each_layer_stays():
    net, x = network("residual")
    small = group_vd.prune(net, x, threshold=-math.inf)
    for (_, gate), (_, whole) in zip(gates(small), gates(net), strict=True):
        assert gate.alive.nonzero().tolist() == [[whole.log_alpha.argmin().item()]]
    assert small.conv1.posterior.s == 27
    assert torch.isfinite(ssvi.predict(small, x)).all()


def test_digits():
    """More than half of the weights go, and hardly any accuracy. In a hurry: a high learning rate, and KL / 3."""
    torch.manual_seed(0)
    net = group_vd.to_group_vd(lenet(size=8, width=16))
    data = train_on_digits(net, group_vd.kl, beta=lambda share: 0.3 * min(2 * share, 1.0), epochs=20)
    removed, accuracy = removed_and_accuracy(
        group_vd.prune(net.eval(), data.normalise(data.test.x), threshold=0.0), data
    )
    assert removed >= 0.5, removed
    assert accuracy >= 0.93, accuracy
