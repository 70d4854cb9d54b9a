"""A sparse point estimate is RigL, SET or static sparse training; and it is what `mean` and `sample` give."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import batch, net

import ssvi
from ssvi.nn.posterior import SparsePoint

LR, MOMENTUM, DECAY, ALPHA = 0.05, 0.9, 1e-3, 0.5


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(72, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5))


class Reference:
    """RigL (Evci 2020) by its definition: dense weights, masks, autograd's dense gradient, SGD by hand."""

    def __init__(self, plain: nn.Module, masks: dict[str, torch.Tensor]) -> None:
        self.plain = plain
        self.masks = {f"{name}.weight": mask.clone() for name, mask in masks.items()}
        self.velocity = {name: torch.zeros_like(p) for name, p in plain.named_parameters()}
        self.returned = 0

    def step(self, x, y, *, rate: float | None, replaces: bool) -> None:
        """One batch; with a rate it is an update of the masks, which replaces the optimiser's step or follows it."""
        parameters = dict(self.plain.named_parameters())
        gradients = torch.autograd.grad(F.cross_entropy(self.plain(x), y), list(parameters.values()))
        with torch.no_grad():
            for (name, p), gradient in zip(parameters.items(), gradients, strict=True):
                if rate is None or not replaces:
                    v = self.velocity[name] = MOMENTUM * self.velocity[name] + self._live(name, gradient + DECAY * p)
                    p -= LR * v
                if rate is not None and name in self.masks:
                    self._update(name, p.view(-1), gradient.flatten().tolist(), rate)

    def _live(self, name, values):
        return values * self.masks[name] if name in self.masks else values

    def _update(self, name, weight, gradient, rate) -> None:
        """Drop the k smallest |w|, grow the k largest |gradient| among the positions not kept; ties to the lower one."""
        mask, velocity, size = self.masks[name].view(-1), self.velocity[name].view(-1), weight.abs().tolist()
        live = mask.nonzero().flatten().tolist()
        k = math.floor(rate * len(live))
        kept = sorted(live, key=lambda i: (-size[i], i))[: len(live) - k]
        grown = sorted(set(range(len(size))) - set(kept), key=lambda i: (-abs(gradient[i]), i))[:k]
        fresh = [i for i in grown if not mask[i]]
        self.returned += sum(size[i] > 0 for i in set(grown) - set(fresh))
        mask.fill_(False)
        mask[kept + grown] = True
        for values in (weight, velocity):
            values[fresh] = 0.0
            values.mul_(mask)


def point_network(make=net, density=0.3) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(make().double(), density, point=True)
    return bnn, torch.optim.SGD(bnn.parameters(), lr=LR, momentum=MOMENTUM, weight_decay=DECAY)


def example(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = batch(step, 12)
    return x.double(), y


@pytest.mark.parametrize("replaces", [True, False], ids=["replaces the step", "follows the step"])
@pytest.mark.parametrize("make", [mlp, net])
def test_it_is_rigl_over_dense_masks_step_by_step(make, replaces):
    """f_t = alpha / 2 (1 + cos(pi t / T_end)) for step t; then as static sparse training from T_end on."""
    bnn, optimizer = point_network(make)
    masks = {name: layer.gamma for name, layer in ssvi.layers(bnn)}
    reference = Reference(ssvi.mean(bnn, dense=True), masks)
    every, end = 2, 50
    cosine = ssvi.schedules.cosine(ALPHA, steps=end)
    subspace = ssvi.Subspace(
        bnn, optimizer, every=every, rate=lambda u: cosine((u + 1) * every), removal="abs_mu", until=end
    )
    moved = 0
    for t in range(1, end + 7):
        x, y = example(t)
        optimizer.zero_grad()
        F.cross_entropy(bnn(x), y).backward()
        if not (replaces and subspace.due):
            optimizer.step()
        update = subspace.step()
        due = t % every == 0 and t <= end
        assert due == (update is not None)
        rate = ALPHA / 2 * (1 + math.cos(math.pi * t / end)) if due else None
        reference.step(x, y, rate=rate, replaces=replaces)
        moved += update.count if update else 0
        assert_same(bnn, optimizer, reference)
    assert moved > 500
    assert reference.returned > 50  # dropped and chosen again in one update


def assert_same(bnn, optimizer, reference) -> None:
    """Masks exactly; weights and momentum to rounding."""
    for name, layer in ssvi.layers(bnn):
        p, key = layer.posterior, f"{name}.weight"
        assert torch.equal(p.gamma, reference.masks[key])
        weight = reference.plain.get_submodule(name).weight
        torch.testing.assert_close(p.dense(p.mu), weight, rtol=1e-9, atol=1e-12)
        state = optimizer.state[p.mu]
        velocity = p.dense(state["momentum_buffer"]) if state else torch.zeros_like(weight)
        torch.testing.assert_close(velocity, reference.velocity[key], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(layer.bias, reference.plain.get_submodule(name).bias, rtol=1e-9, atol=1e-12)


def test_set_replaces_the_smallest_by_chance_and_touches_nothing_else():
    bnn, optimizer = point_network()
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, removal="abs_mu", addition="random")
    seen = {name: layer.gamma.flatten() for name, layer in ssvi.layers(bnn)}
    for t in range(40):
        x, y = example(t)
        optimizer.zero_grad()
        F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        before = {name: everything(layer.posterior, optimizer) for name, layer in ssvi.layers(bnn)}
        update = subspace.step()
        for name, layer in ssvi.layers(bnn):
            old, p = before[name], layer.posterior
            k, new = math.floor(0.3 * p.s), everything(p, optimizer)
            smallest = set(sorted(old, key=lambda i, old=old: (-abs(old[i][0]), i))[p.s - k :])
            assert len(new) == len(old)
            assert set(old) - set(new) <= smallest
            assert all(new[i] == old.get(i, (0.0, 0.0)) for i in new)
            seen[name][update.moves[name].added] = True
    assert all(positions.float().mean() > 0.95 for positions in seen.values())  # every position has its chance


def everything(posterior, optimizer) -> dict[int, tuple[float, float]]:
    """Position -> weight and momentum."""
    momentum = optimizer.state[posterior.mu]["momentum_buffer"]
    return dict(zip(posterior.index.tolist(), zip(posterior.mu.tolist(), momentum.tolist(), strict=True), strict=True))


@pytest.mark.parametrize("kernel", ["dense", "auto"])
def test_a_point_uses_no_random_numbers_and_has_no_rho(kernel):
    bnn, _ = point_network()
    bnn = bnn.float()
    optimizer = torch.optim.SGD(bnn.parameters(), lr=LR, momentum=MOMENTUM)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.3, removal="abs_mu")
    state = torch.get_rng_state()
    with ssvi.kernels.use(kernel):
        for t in range(4):
            x, y = batch(t)
            optimizer.zero_grad()
            F.cross_entropy(bnn(x), y).backward()
            optimizer.step()
            subspace.step()
        drawn = ssvi.predict_samples(bnn, x, 3)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(drawn) == 1  # there is one theta
    assert subspace.last.count > 0
    assert sorted(name for name, _ in bnn.named_parameters()) == [
        f"{layer}.{name}" for layer in "024" for name in ("bias", "posterior.mu")
    ]


@pytest.mark.parametrize("density", [0.1, 1.0])
def test_a_point_stores_an_index_and_a_number_for_each_live_weight(density):
    bnn = ssvi.to_bnn(mlp(), density, point=True)
    points = [layer.posterior for _, layer in ssvi.layers(bnn)]
    assert sum(p.s for p in points) == round(density * sum(p.d for p in points))
    for p in points:
        stored = [*p.parameters(), *p.buffers()]
        assert sum(t.numel() for t in stored) == 2 * p.s
        assert sum(t.numel() * t.element_size() for t in stored) == 8 * p.s


@pytest.mark.parametrize("kernel", ["dense", "auto"])
@pytest.mark.parametrize("make", [mlp, net])
def test_mean_and_sample_are_point_networks_equal_to_the_pinned_ones(make, kernel):
    bnn = ssvi.to_bnn(make(), 0.2, sigma_init=0.1)
    x = batch(0)[0]
    with ssvi.kernels.use(kernel):
        with ssvi.at_mean(bnn):
            at_mean = bnn(x)
        with ssvi.at_sample(bnn, torch.Generator().manual_seed(7)):
            at_sample = bnn(x)
        mean, drawn = ssvi.mean(bnn), ssvi.sample(bnn, torch.Generator().manual_seed(7))
        assert torch.equal(mean(x), at_mean)
        assert torch.equal(drawn(x), at_sample)
    assert not torch.equal(at_mean, at_sample)
    for point in (mean, drawn):
        for (_, layer), (_, theirs) in zip(ssvi.layers(point), ssvi.layers(bnn), strict=True):
            assert type(layer.posterior) is SparsePoint
            assert torch.equal(layer.index, theirs.index)
