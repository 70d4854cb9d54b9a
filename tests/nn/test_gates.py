"""Gates: where they are, what they multiply, and the network into whose weights they are folded."""

import math

import pytest
import torch
from gated_networks import NETS, FixedGate, close_some, inputs, network
from torch import nn

import ssvi
from ssvi.nn.gates import folded, gated, gates, places, put
from ssvi.nn.models import ResNet, lenet, mlp, resnet18

# Where gates are.


def test_places_are_the_outputs_of_hidden_layers_after_their_norm():
    assert places(mlp(width=7)) == {"1": 7, "3": 7}
    assert places(lenet()) == {"1": 32, "5": 64, "9": 128}
    channels_at = places(resnet18())
    assert len(channels_at) == 1 + 8 * 2 + 3
    assert all(name.endswith(("bn1", "bn2", "shortcut.1")) for name in channels_at)
    assert channels_at["stages.3.0.shortcut.1"] == channels_at["stages.3.1.bn2"] == 512
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
        def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> torch.Tensor:
            return torch.arange(math.prod(shape)).view(shape)

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
