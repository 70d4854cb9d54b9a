"""What cannot be converted is left alone, works as before, and `summary` says why."""

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import ssvi
from ssvi.nn.bayes_layer import BayesLayer


class Rotation(nn.Module):
    """A layer of a user's own."""

    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(8))

    def forward(self, x):
        return x @ self.matrix


class Zoo(nn.Module):
    """Layers that can and that cannot be converted."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.lstm = nn.LSTM(8, 8, num_layers=2, bidirectional=True)
        self.attention = nn.MultiheadAttention(8, 2)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(16, 8))
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.up = nn.ConvTranspose1d(8, 8, 1)
        self.own = Rotation()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        h = self.own(self.norm(self.linear(x)))
        h = self.attention(h, h, h)[0] * self.scale
        h = self.normed(self.lstm(h)[0])
        return self.up(self.frozen(self.encoder(h)).transpose(1, 2))


def test_what_cannot_be_converted_works_as_before_and_is_explained():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(Zoo(), 0.5)
    converted = {name for name, _ in ssvi.layers(bnn)}
    assert converted == {
        *("linear", "lstm", "attention", "attention.out_proj", "up"),
        *("encoder.linear1", "encoder.linear2", "encoder.self_attn", "encoder.self_attn.out_proj"),
    }
    said = ssvi.summary(bnn)
    for layer, reason in {
        "norm ": "normalisation",
        "frozen": "frozen",
        "own": "Rotation is not a layer that we know: to_bnn(..., layers={Rotation: ('matrix',)}) converts it",
        "normed": "computed by a parametrization",
        "(the network)": "layers={Zoo: ('scale',)}) converts it",
    }.items():
        line = next(line for line in said.splitlines() if line.startswith(layer))
        assert reason in line
    x = torch.randn(2, 5, 8)
    bnn(x).sum().backward()
    with torch.no_grad():  # the encoder's fast path reads linear1.weight itself
        out = torch.stack([bnn.eval()(x) for _ in range(3)])
    assert torch.isfinite(out).all()
    assert not torch.equal(out[0], out[1])


def test_old_style_hooks_on_the_weight_are_left_alone():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    prune.random_unstructured(net[0], "weight", amount=0.5)
    with pytest.raises(ValueError, match=r"net cannot be copied.*prune\.remove"):
        ssvi.to_bnn(net, 0.5)
    with torch.no_grad():  # now the weight that the hook computes has no graph, and torch can copy it
        net(torch.randn(3, 4))
    with pytest.warns(ssvi.ConversionWarning, match=r"only 33.3% of the 24 weights.*0 \(16\): its weight is computed"):
        bnn = ssvi.to_bnn(net, 0.5)
    assert not isinstance(bnn[0], BayesLayer)
    assert "computed by a hook" in ssvi.summary(bnn)
    assert bnn(torch.randn(3, 4)).shape == (3, 2)


def test_lazy_layers_are_left_alone_and_named(recwarn):
    net = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(2))
    with pytest.warns(
        ssvi.ConversionWarning, match=r"^1 \(LazyLinear\) will not become Bayesian: .*run a batch.*in skip$"
    ):
        bnn = ssvi.to_bnn(net, 0.5)
    recwarn.clear()
    assert "named in skip" in ssvi.summary(ssvi.to_bnn(net, 0.5, skip=("1",)))
    assert not [warning for warning in recwarn if warning.category is ssvi.ConversionWarning]
    assert "its size is not known yet" in ssvi.summary(bnn)
    assert bnn(torch.randn(3, 4)).shape == (3, 2)
