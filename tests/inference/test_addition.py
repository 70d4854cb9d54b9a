"""Addition scores: the dense gradient by brute force is the oracle, and no more than one of it exists at a time."""

import copy
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import dense_gradients, dense_gradients_at_mean, net, train_step

import ssvi
from ssvi.inference.addition import top_k
from ssvi.kernels.geometry import Geometry


def test_top_k_prefers_the_lower_position():
    score = torch.tensor([1.0, 3.0, 3.0, 0.0, 3.0, 2.0])
    assert [top_k(score, k).tolist() for k in range(5)] == [[], [1], [1, 2], [1, 2, 4], [1, 2, 4, 5]]


@pytest.mark.parametrize("mc_steps", [1, 3])
@pytest.mark.parametrize("addition", ["sample", "mean"])
def test_addition_scores_are_the_dense_gradient(addition, mc_steps, dense_kernel):
    """Criteria 1, 2 and 3: the positions that come in are the best of the brute-force gradient over all d positions."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2, sigma_init=0.1)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    subspace = ssvi.Subspace(bnn, optimizer, every=4, rate=0.5, removal="abs_mu", addition=addition, mc_steps=mc_steps)
    scores = {name: torch.zeros(layer.posterior.d) for name, layer in ssvi.layers(bnn)}
    for i in range(4):
        if i >= 4 - mc_steps:
            gradients = dense_gradients_at_mean(bnn, i) if addition == "mean" else dense_gradients(bnn, i)
            for name in scores:
                scores[name] += gradients[name]
        assert subspace.due == (i == 3)
        train_step(bnn, optimizer, i)
        before = copy.deepcopy(bnn)
        update = subspace.step()
    for (name, old), (_, new) in zip(ssvi.layers(before), ssvi.layers(bnn), strict=True):
        k = old.posterior.s // 2
        kept = old.mu.abs().argsort(descending=True, stable=True)[: old.posterior.s - k]
        score = scores[name].clone()
        score[old.index[kept].long()] = -1.0
        want = {*old.index[kept].tolist(), *score.argsort(descending=True, stable=True)[:k].tolist()}
        assert set(new.index.tolist()) == want
        assert update.moves[name].count == len(want - set(old.index.tolist()))


def test_a_tied_weight_is_scored_by_the_sum_of_its_gradients():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(6, 6, bias=False), nn.Linear(6, 6)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(self.a(x).tanh()).tanh() + F.linear(x, self.b.weight))

    torch.manual_seed(0)
    bnn = ssvi.to_bnn(Twice().double(), 0.4)
    x = torch.randn(5, 6, dtype=torch.float64)
    plain = ssvi.mean(bnn, dense=True)
    plain(x).square().sum().backward()
    score = plain.a.weight.grad.abs().flatten()
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.0)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5, removal="abs_mu", addition="mean")
    index, kept = bnn.a.index.long(), bnn.a.mu.abs().argsort(descending=True)[:7]
    bnn(x).square().sum().backward()
    subspace.step()
    score[index[kept]] = -1
    assert set(bnn.a.index.tolist()) == {*index[kept].tolist(), *score.argsort(descending=True)[:7].tolist()}


def test_no_more_than_one_dense_gradient_exists_at_a_time(monkeypatch):
    alive: list[weakref.ref] = []
    most = 0
    form = Geometry.weight_gradient

    def counting(self, x, grad_y):
        nonlocal most
        gradient = form(self, x, grad_y)
        alive.append(weakref.ref(gradient))
        most = max(most, sum(ref() is not None for ref in alive))
        return gradient

    monkeypatch.setattr(Geometry, "weight_gradient", counting)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.Adam(bnn.parameters())
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.5)
    for i in range(4):
        train_step(bnn, optimizer, i)
        kept = [collector.scores for collector in subspace._collectors.values()]
        assert all(len(a.live_score) + len(a.absent_index) <= 2 * len(a.live_score) for a in kept), (
            "s-sized, not d-sized"
        )
        subspace.step()
    assert len(alive) == 6, "three layers, on the two update steps alone"
    assert most == 1
    assert not any(ref() is not None for ref in alive)
