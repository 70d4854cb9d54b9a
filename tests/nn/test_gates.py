"""Gates: where they are, what they multiply, and which weights are left, against every weight tried by itself."""

import copy

import pytest
import torch
from torch import nn

import ssvi
from ssvi.nn.gates import Gate, folded, gated, gates, places, put
from ssvi.nn.models import ResNet, lenet, mlp, resnet18
from ssvi.nn.reach import reachable, sparsified


class FixedGate(Gate):
    """z is random numbers that do not change."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.z = nn.Parameter(0.2 + torch.rand(channels))

    @property
    def mean(self) -> torch.Tensor:
        return self.z

    def sample(self, generator: torch.Generator | None = None) -> torch.Tensor:
        return self.z

    def draw(self, examples: int) -> torch.Tensor:
        return self.z.expand(examples, -1)


def tied() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    net[2].weight = net[0].weight
    return net


NETS = {
    "mlp": (lambda: mlp(size=3, width=5, classes=3), (1, 3, 3)),
    "tanh": (lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)), (4,)),
    "lenet": (lambda: lenet(size=4, width=2, classes=3), (1, 4, 4)),
    "residual": (lambda: ResNet((1, 1), classes=2, width=3, channels=2), (2, 4, 4)),
    "no norm": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)),
        (2, 2, 2),
    ),
    "pool of a small image": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, 2)),
        (1, 2, 2),
    ),
    "tied": (tied, (4,)),
}
nets = pytest.mark.parametrize("name", NETS)


def network(name: str, seed: int = 0) -> nn.Module:
    """A gated network in float64, neither initial nor small; a channel that gets nothing gives something positive, so
    that for some input every ReLU is open."""
    torch.manual_seed(seed)
    net = NETS[name][0]().double()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.running_mean.uniform_(-2, -0.5)
                module.running_var.uniform_(0.5, 2)
                module.weight.uniform_(0.5, 2)
            elif isinstance(module, (nn.Linear, nn.Conv2d)):
                module.weight.normal_(mean=0.7)
            if getattr(module, "bias", None) is not None:
                module.bias.uniform_(0.1, 1)
    return gated(net, FixedGate).eval()


def inputs(name: str, n: int = 50) -> torch.Tensor:
    return 3 * torch.randn(n, *NETS[name][1], dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def close_some(net: nn.Module, seed: int = 2) -> None:
    """In every gate at least one channel is closed, and one stays."""
    generator = torch.Generator().manual_seed(seed)
    for _, gate in gates(net):
        order = torch.randperm(gate.channels, generator=generator)
        gate.alive[order[: max(1, gate.channels // 3)]] = False


def tried(net: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Change every weight that is not zero by itself and see whether any output moves."""
    found = {}
    with torch.no_grad():
        before = net(x)
        for name, module in net.named_modules():
            if type(module) in (nn.Linear, nn.Conv2d):
                flat = module.weight.view(-1)
                moves = torch.zeros(flat.numel(), dtype=torch.bool)
                for i in flat.nonzero().flatten().tolist():
                    kept = flat[i].item()
                    for value in (kept + 30, kept - 30):
                        flat[i] = value
                        moves[i] |= bool((net(x) - before).abs().max() > 1e-9)
                    flat[i] = kept
                found[name] = moves.view(module.weight.shape)
    return found


def assert_same_masks(got: dict[str, torch.Tensor], want: dict[str, torch.Tensor]) -> None:
    assert got.keys() == want.keys()
    for name in got:
        assert torch.equal(got[name], want[name]), name


# Where gates are.


def test_places_are_the_outputs_of_hidden_layers_after_their_norm():
    assert places(mlp(width=7)) == {"1": 7, "3": 7}
    assert places(lenet()) == {"1": 32, "5": 64, "9": 128}
    found = places(resnet18())
    assert len(found) == 1 + 8 * 2 + 3
    assert all(name.endswith(("bn1", "bn2", "shortcut.1")) for name in found)
    assert found["stages.3.0.shortcut.1"] == found["stages.3.1.bn2"] == 512
    assert places(ssvi.to_bnn(lenet(), 0.5)) == places(lenet())


def test_other_normalisation_is_refused():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
    with pytest.raises(ValueError, match="GroupNorm"):
        gated(net, FixedGate)


def test_gates_are_of_the_networks_kind_and_on_a_copy():
    plain = mlp(size=3).double()
    net = gated(plain, FixedGate)
    assert {gate.z.dtype for _, gate in gates(net)} == {torch.float64}
    assert [name for name, _ in gates(net)] == ["1", "3"]
    assert not list(gates(plain))
    x = torch.randn(5, 1, 3, 3, dtype=torch.float64)
    want = plain[1](plain[0](x))
    torch.testing.assert_close(net[1](net[0](x)), want * net[1].gate.z)


def test_a_gate_on_a_sequence_multiplies_the_last_dimension():
    torch.manual_seed(0)
    layer, x = nn.Linear(4, 6), torch.randn(3, 6, 4)
    want = layer(x)
    put(layer, FixedGate(6))
    torch.testing.assert_close(layer(x), want * layer.gate.z)


def test_a_gate_has_its_own_z_for_every_example_and_all_its_pixels():
    class Numbered(FixedGate):
        def draw(self, examples: int) -> torch.Tensor:
            return torch.arange(examples * self.channels).view(examples, -1)

    gate = Numbered(3)
    gate.alive[1] = False
    y = gate(torch.ones(2, 3, 2, 2))
    assert y[:, :, 0, 0].tolist() == [[0, 0, 2], [3, 0, 5]]
    assert (y == y[:, :, :1, :1]).all()
    with ssvi.at_mean(gate):
        torch.testing.assert_close(gate(torch.ones(2, 3)), (gate.z * gate.alive).expand(2, -1))


def test_close_below_keeps_the_best_and_reopens_nothing():
    gate, score = FixedGate(4), torch.tensor([1.0, 3.0, 2.0, 5.0])
    gate.close_below(2.0, score)
    assert gate.alive.tolist() == [False, True, True, True]
    gate.alive[3] = False
    gate.close_below(0.0, score)
    assert gate.alive.tolist() == [False, True, True, False]
    gate.close_below(9.0, score)
    assert gate.alive.tolist() == [False, True, False, False]
    with pytest.raises(FloatingPointError, match="NaN"):
        gate.close_below(0.0, score * torch.nan)


# Folding.


@pytest.mark.parametrize("name", sorted(set(NETS) - {"tied"}))  # one weight cannot take up two gates
@pytest.mark.parametrize("training", [False, True])
def test_folded_is_gated_in_training_and_evaluation(name, training):
    """Also in training, where a gate before BatchNorm would be normalised away."""
    net, x = network(name).train(training), inputs(name)
    close_some(net)
    want = net(x)
    plain = folded(net)
    assert not list(gates(plain))
    torch.testing.assert_close(plain(x), want)
    for _, gate in gates(net):
        torch.nn.init.ones_(gate.z)
    assert (net(x) - want).abs().max() > 0.01


def test_fused_batchnorm_does_not_pass_over_gates():
    """In float32 a plain residual network takes the fused operator, a gated one must not."""
    torch.manual_seed(0)
    net = gated(ResNet((1, 1), classes=3, width=4), FixedGate)
    x = torch.randn(8, 3, 8, 8)
    torch.testing.assert_close(folded(net)(x), net(x), rtol=1e-4, atol=1e-4)


def test_points_are_folded_and_gaussians_refused():
    torch.manual_seed(0)
    plain, x = mlp(size=3, width=6), torch.randn(5, 1, 3, 3)
    net = gated(ssvi.to_bnn(plain, 0.5, point=True), FixedGate)
    with ssvi.at_mean(net):
        want = net(x)
    torch.testing.assert_close(folded(net)(x), want)
    with pytest.raises(ValueError, match=r"ssvi\.mean"):
        folded(gated(ssvi.to_bnn(plain, 0.5), FixedGate))
    norm = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, affine=False), nn.Linear(3, 2))
    with pytest.raises(ValueError, match="affine"):
        folded(gated(norm, FixedGate))


# Live weights.


@nets
def test_live_with_all_gates_open(name):
    net = network(name)
    assert_same_masks(reachable(net, inputs(name)), tried(net, inputs(name)))


@nets
def test_live_with_closed_gates_and_a_network_of_these_weights_alone(name):
    net, x = network(name), inputs(name)
    close_some(net)
    found = reachable(net, x)
    assert_same_masks(found, tried(net, x))
    assert all(0 < mask.sum() < mask.numel() for mask in found.values())
    if name != "tied":
        assert_same_masks(reachable(folded(net), x), found)
    small = sparsified(net, found)
    assert all(torch.equal(layer.gamma, found[n]) for n, layer in ssvi.layers(small))
    torch.testing.assert_close(small(x), net(x))
    assert not list(ssvi.layers(net))


@nets
def test_live_with_zero_weights(name):
    """Channels without an incoming weight that still have a bias, and channels that nobody listens to."""
    net = network(name)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for module in net.modules():
            if type(module) in (nn.Linear, nn.Conv2d):
                module.weight.mul_(torch.rand(module.weight.shape, generator=generator) < 0.4)
                module.weight[0] = 0
                module.weight[:, -1] = 0
    close_some(net)
    assert_same_masks(reachable(net, inputs(name)), tried(net, inputs(name)))


def test_live_by_hand():
    """Conv 2 -> 3 channels and 3x3 kernels, one channel closed: 2/3 of it; the next layer loses a third of its inputs."""
    net = gated(nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 5)), FixedGate)
    net[0].gate.alive[1] = False
    found = reachable(net, torch.randn(1, 2, 4, 4))
    assert found["0"].sum(dim=(1, 2, 3)).tolist() == [18, 0, 18]
    assert found["2"].sum(0).tolist() == [5] * 4 + [0] * 4 + [5] * 4


def test_live_changes_nothing():
    net = network("residual").train()
    state = copy.deepcopy(net.state_dict())
    reachable(net, inputs("residual"))
    assert net.training
    assert all(torch.equal(value, state[key]) for key, value in net.state_dict().items())


# Weights that are gone.


def test_tied_layers_stay_tied():
    net, x = network("tied"), inputs("tied")
    small = sparsified(net, reachable(net, x))
    assert small[0].posterior is small[2].posterior


def test_posteriors_are_restricted_to_the_live_weights():
    torch.manual_seed(0)
    net, x = gated(ssvi.to_bnn(mlp(size=3, width=6), 0.7), FixedGate), torch.randn(5, 1, 3, 3)
    close_some(net)
    small = sparsified(net, reachable(net, x))
    for name, layer in ssvi.layers(small):
        whole = net.get_submodule(name).posterior
        kept = torch.isin(whole.index, layer.index)
        assert 0 < kept.sum() < whole.s
        assert torch.equal(whole.mu[kept], layer.mu)
        assert torch.equal(whole.sigma[kept], layer.sigma)
    with ssvi.at_mean(net), ssvi.at_mean(small):
        torch.testing.assert_close(small(x), net(x))


def test_a_layer_without_live_weights_keeps_one_and_says_nothing():
    net, x = network("residual"), inputs("residual")
    name, gate = list(gates(net))[-1]
    gate.alive.zero_()
    small = sparsified(net, reachable(net, x))
    conv = small.get_submodule(name.replace("shortcut.1", "shortcut.0"))
    assert conv.posterior.s == 1
    torch.testing.assert_close(small(x), net(x))
