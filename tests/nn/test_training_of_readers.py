"""Training, updates of gamma and prediction with layers that read their weights, and two whole networks of torch."""

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from read_layers import CASES, OWN, Gated, random_parameters, tensor
from torch import nn

import ssvi
from ssvi.nn.layers import posteriors

# torch's own, for an LSTM with projections in float32
no_onednn = pytest.mark.filterwarnings("ignore:LSTM with projections")


class UNet(nn.Module):
    """Down, down, up, up, with skip connections."""

    def __init__(self):
        super().__init__()
        self.first, self.down = self.block(3, 8), self.block(8, 16)
        self.bottom = self.block(16, 32)
        self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.merge1, self.merge2 = self.block(32, 16), self.block(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    @staticmethod
    def block(a: int, b: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    def forward(self, x):
        a = self.first(x)
        b = self.down(F.max_pool2d(a, 2))
        h = self.bottom(F.max_pool2d(b, 2))
        h = self.merge1(torch.cat([self.up1(h), b], 1))
        return self.head(self.merge2(torch.cat([self.up2(h), a], 1)))


class Tagger(nn.Module):
    """A word embedding, a bidirectional LSTM, and a tag for each word."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 16, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(32, 3)

    def forward(self, words):
        return self.head(self.lstm(self.embedding(words))[0]).movedim(-1, 1)


def images() -> tuple[torch.Tensor, torch.Tensor]:
    """The class of a pixel is whether its first channel is positive."""
    x = torch.randn(16, 3, 8, 8)
    return x, (x[:, 0] > 0).long()


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """The tag of a word is its number modulo 3."""
    words = torch.randint(1, 40, (32, 6))
    return words, words % 3


NETWORKS = {"u-net": (UNet, images), "lstm tagger": (Tagger, sentences)}


def share_converted(net: nn.Module, bnn: nn.Module) -> float:
    """Of all parameters, biases and normalisation included."""
    return sum(p.d for p in posteriors(bnn).values()) / sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("optimiser", ["IVON", "ELBO"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_torch_is_converted_trained_saved_loaded_and_predicts(name, optimiser, tmp_path):
    torch.manual_seed(0)
    make, data = NETWORKS[name]
    net, (x, y) = make(), data()
    bnn = ssvi.to_bnn(net, 0.5)
    assert share_converted(net, bnn) >= 0.95
    losses = steps(bnn, lambda: F.cross_entropy(bnn(x), y), 90, optimiser)
    assert sum(losses[-5:]) < 0.7 * sum(losses[:5])
    ssvi.save(bnn, tmp_path / "model.safetensors")
    loaded = ssvi.load(tmp_path / "model.safetensors", net)
    bnn.eval()
    for seed in (0, 1):
        with torch.no_grad():
            with ssvi.at_sample(bnn, torch.Generator().manual_seed(seed)):
                want = bnn(x)
            with ssvi.at_sample(loaded, torch.Generator().manual_seed(seed)):
                assert torch.equal(loaded(x), want)


def steps(bnn: nn.Module, loss_of: Callable[[], torch.Tensor], count: int, optimiser: str) -> list[float]:
    """The losses of so many steps, with updates of gamma."""
    ivon = ssvi.IVON(bnn, lr=0.3, train_size=100_000, warmup=10) if optimiser == "IVON" else None
    optimizer = ivon or torch.optim.Adam(bnn.parameters(), lr=0.01)
    elbo, losses = ssvi.ELBO(bnn, train_size=100_000), []
    subspace = ssvi.Subspace(bnn, optimizer, every=10, rate=0.2)
    for _ in range(count):
        optimizer.zero_grad()
        with ivon.sampled() if ivon else nullcontext():
            loss = loss_of()
            (loss if ivon else elbo(loss)).backward()
        optimizer.step()
        subspace.step()
        losses.append(loss.item())
    assert subspace.t == count // 10
    return losses


@no_onednn
@pytest.mark.parametrize("name", CASES)
def test_an_update_moves_the_support_as_the_dense_gradients_say(name):
    """By hand: the k smallest |mu| leave, and of these and the absent the k with the largest |dl/dtheta| come in, with the
    gradients of torch's own network at the mean."""
    torch.manual_seed(0)
    make, inputs = CASES[name]
    net, args = make(), inputs()
    bnn = ssvi.to_bnn(net, 0.5, layers=OWN if isinstance(net, Gated) else None)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.0)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, addition="mean", removal="abs_mu")
    plain = ssvi.mean(bnn, dense=True)
    slope = torch.randn_like(tensor(plain(*args)))
    (tensor(plain(*args)) * slope).sum().backward()
    random = random_parameters(bnn)
    expected = {of: support_by_hand(*random[of], plain.get_parameter(of).grad) for of in random}
    (tensor(bnn(*args)) * slope).sum().backward()
    optimizer.step()
    assert subspace.step() is not None
    assert {of: layer.posteriors[of_layer].index.tolist() for of, (layer, of_layer) in random.items()} == expected


def support_by_hand(layer: nn.Module, parameter: str, gradient: torch.Tensor) -> list[int]:
    posterior = layer.posteriors[parameter]
    score = layer.layout.theta(gradient).flatten().abs()
    k = min(int(0.3 * posterior.s), posterior.d - posterior.s)
    stay = posterior.index.long()[posterior.mu.abs().argsort()[k:]]
    score[stay] = -1
    return sorted(stay.tolist() + score.topk(k).indices.tolist())


@no_onednn
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("optimiser", ["IVON", "ELBO"])
def test_every_layer_learns(name, optimiser):
    """The loss at the mean falls, and every sigma has moved."""
    torch.manual_seed(0)
    make, inputs = CASES[name]
    net, args = make(), inputs()
    bnn = ssvi.to_bnn(net, 0.5, layers=OWN if isinstance(net, Gated) else None)
    target = 0.8 * torch.randn_like(tensor(net(*args))).sign()
    before = {of: p.sigma.detach().clone() for of, p in posteriors(bnn).items()}

    def loss() -> torch.Tensor:
        return (tensor(bnn(*args)).tanh() - target).square().mean()

    with ssvi.at_mean(bnn):
        start = loss().item()
    steps(bnn, loss, 40, optimiser)
    with ssvi.at_mean(bnn):
        assert loss().item() < 0.95 * start
    for of, posterior in posteriors(bnn).items():
        assert not torch.equal(posterior.sigma, before[of])
