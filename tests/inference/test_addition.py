"""Addition scores: the dense gradient by brute force is the oracle, and it does not outlive its batch."""

import copy
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import batch, dense_gradients, dense_gradients_at_mean, net, train_step

import ssvi
from ssvi.kernels.geometry import Geometry
from ssvi.nn.random_tensor import is_random
from ssvi.structures.selection import top_k


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


@pytest.mark.parametrize(
    "options", [{}, {"local": True}, {"generator": torch.Generator()}], ids=["draws", "local", "seed"]
)
def test_criterion_2_pins_training_and_no_prediction(options):
    bnn = ssvi.to_bnn(net(), 0.2, sigma_init=0.1)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=4, rate=0.5, addition="mean")
    x, _ = batch(0)
    for i in range(8):
        assert torch.equal(bnn(x), bnn(x)) == subspace.due
        train_step(bnn, optimizer, i)
        drawn = ssvi.predict_samples(bnn, x, samples=3, **options)
        assert len(drawn) == 3
        assert not torch.equal(drawn[0], drawn[1])
        subspace.step()


@pytest.mark.parametrize("evaluating", [False, True], ids=["train", "eval"])
def test_criterion_2_reaches_the_thread_that_trains(evaluating):
    """The network is made in one thread and trained in another, also in evaluation mode."""
    bnn = ssvi.to_bnn(net(), 0.2, sigma_init=0.1).train(not evaluating)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5, addition="mean", until=3)
    x, _ = batch(0)

    def train() -> list[bool]:
        at_mean = []
        for i in range(5):
            at_mean.append(torch.equal(bnn(x), bnn(x)))
            train_step(bnn, optimizer, i)
            subspace.step()
        return at_mean

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train).result() == [True, True, True, False, False]
        assert pool.submit(is_random, bnn).result()
    assert is_random(bnn)


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


def count_dense_gradients(monkeypatch) -> list[weakref.ref]:
    """Every dense gradient that is formed from now on, and whether it still exists."""
    formed: list[weakref.ref] = []
    form = Geometry.weight_gradient

    def counting(self, x, grad_y):
        gradient = form(self, x, grad_y)
        formed.append(weakref.ref(gradient))
        return gradient

    monkeypatch.setattr(Geometry, "weight_gradient", counting)
    return formed


@pytest.mark.parametrize("mc_steps", [1, 2])
@pytest.mark.parametrize(("micro_batches", "held"), [(1, 0), (None, 3)])
def test_dense_gradients_are_freed_at_the_end_of_the_batch(micro_batches, held, mc_steps, monkeypatch):
    """At the end of a layer's backward pass if the user says that there is one; otherwise in `step`."""
    formed = count_dense_gradients(monkeypatch)
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.Adam(bnn.parameters())
    options = {"mc_steps": mc_steps, "candidates": 2, "micro_batches": micro_batches}
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.5, **options)
    for i in range(4):
        collects = i % 2 == 1 or mc_steps == 2
        train_step(bnn, optimizer, i)
        assert sum(ref() is not None for ref in formed) == held * collects
        subspace.step()
        assert not any(ref() is not None for ref in formed)
    assert len(formed) == 3 * 2 * mc_steps, "three layers, on the batches of the two updates alone"


@pytest.mark.parametrize("micro_batches", [None, 2])
@pytest.mark.parametrize("mc_steps", [1, 2])
def test_the_scores_of_micro_batches_are_those_of_the_whole_batch(mc_steps, micro_batches):
    def supports(parts: int, declared: int | None) -> list[torch.Tensor]:
        torch.manual_seed(0)
        bnn = ssvi.to_bnn(net().double(), 0.2, point=True, seed=0, mu_init=0.1)
        optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
        subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.5, mc_steps=mc_steps, micro_batches=declared)
        for i in range(6):
            x, y = batch(i)
            optimizer.zero_grad()
            for x_part, y_part in zip(x.double().chunk(parts), y.chunk(parts), strict=True):
                (F.cross_entropy(bnn(x_part), y_part) / parts).backward()
            optimizer.step()
            subspace.step()
        return [layer.index for _, layer in ssvi.layers(bnn)]

    whole, halves = supports(1, 1), supports(2, micro_batches)
    assert all(torch.equal(a, b) for a, b in zip(whole, halves, strict=True))


def test_more_backward_passes_than_declared_are_an_error():
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    ssvi.Subspace(bnn, optimizer, every=1, rate=0.5, micro_batches=1)
    train_step(bnn, optimizer, 0)
    with pytest.raises(RuntimeError, match="micro_batches=1, but this is backward pass 2"):
        train_step(bnn, optimizer, 1)


def test_snr_is_the_ratio_of_mean_and_standard_deviation():
    """The weights that come in have the largest |mean g| / std g of the brute-force gradients."""
    bnn = ssvi.to_bnn(net().double(), 0.2, point=True, seed=0, mu_init=0.1)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05)
    subspace = ssvi.Subspace(bnn, optimizer, every=5, rate=0.3, removal="abs_mu", addition="snr", mc_steps=4)
    seen = []
    for i in range(5):
        x, y = batch(i)
        plain = ssvi.mean(bnn, dense=True)
        F.cross_entropy(plain(x.double()), y).backward()
        seen.append({name: plain.get_submodule(name).weight.grad.flatten() for name, _ in ssvi.layers(bnn)})
        optimizer.zero_grad()
        F.cross_entropy(bnn(x.double()), y).backward()
        optimizer.step()
        before = copy.deepcopy(bnn)
        subspace.step()
    for (name, old), (_, new) in zip(ssvi.layers(before), ssvi.layers(bnn), strict=True):
        g = torch.stack([gradients[name] for gradients in seen[1:]])
        k = int(0.3 * old.posterior.s)
        kept = old.index.long()[old.mu.abs().argsort(descending=True)[: old.posterior.s - k]]
        score = g.mean(0).abs() / (g.std(0, correction=0) + 1e-300)
        score[kept] = -1.0
        assert set(new.index.tolist()) == {*kept.tolist(), *score.argsort(descending=True)[:k].tolist()}
