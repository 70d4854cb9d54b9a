"""Algorithm 1's update of gamma: hand-made tables, invariants under any sequence, and the dense gradient as an oracle."""

import copy
import weakref

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import ssvi
from ssvi.addition import top_k
from ssvi.geometry import Geometry

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "momentum, no foreach": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=False),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam, foreach": lambda p: torch.optim.Adam(p, lr=0.01, foreach=True),
    "adam, fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
}


@pytest.fixture
def dense_kernel():
    """The brute-force twin lives on all positions, so both sides must draw their noise in the same way."""
    with ssvi.kernels.use("dense"):
        yield


def net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, stride=2), nn.Flatten(), nn.Linear(8 * 4, 5)
    )


def batch(seed: int, n: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 2, 6, 6, generator=generator), torch.randint(5, (n,), generator=generator)


def train_step(bnn, optimizer, seed: int, elbo=None) -> torch.Tensor:
    x, y = batch(seed)
    torch.manual_seed(seed)
    nll = F.cross_entropy(bnn(x), y)
    loss = elbo(nll) if elbo else nll
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def dense_gradients(bnn: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """|dl/dmu| at all d positions, by giving every position a weight: the obviously right twin of the addition score."""
    full = copy.deepcopy(bnn)
    for _, layer in ssvi.layers(full):
        p = layer.posterior
        mu, sigma = p.dense(p.mu).detach(), p.dense(p.sigma).detach().clamp_min(1e-20)
        p._buffers["index"] = torch.arange(p.d, dtype=torch.int32)
        p.mu, p.rho = nn.Parameter(mu.flatten()), nn.Parameter(p.rho_of(sigma.flatten()))
    x, y = batch(seed)
    torch.manual_seed(seed)
    F.cross_entropy(full(x), y).backward()
    return {name: layer.mu.grad.abs() for name, layer in ssvi.layers(full)}


def dense_gradients_at_mean(bnn: nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """The same with theta = mu."""
    plain = ssvi.mean(bnn)
    x, y = batch(seed)
    F.cross_entropy(plain(x), y).backward()
    return {name: plain.get_submodule(name).weight.grad.abs().flatten() for name, _ in ssvi.layers(bnn)}


def linear_with(mu, sigma, index, d=8) -> nn.Module:
    """A Linear(d, 1) whose posterior is what the table says."""
    bnn = ssvi.to_bnn(nn.Linear(d, 1, bias=False), len(index) / d)
    p = bnn.posterior
    with torch.no_grad():
        p.index.copy_(torch.tensor(index))
        p.mu.copy_(torch.tensor(mu))
        p.rho.copy_(p.rho_of(torch.tensor(sigma)))
    return bnn


def one_update(bnn, gradient, **options) -> ssvi.Update:
    """One update whose addition scores are |gradient|, since y = theta x and l = y."""
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.0)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, **options)
    bnn(torch.tensor([gradient])).sum().backward()
    return subspace.step()


@pytest.mark.parametrize(
    ("mu", "index", "gradient", "rate", "new"),
    [
        # the weakest leave, the most wanted come
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 9, 0, 5, 0, 7, 0, 1], 0.5, [0, 1, 4, 5]),
        # equal |mu|: the lower index stays
        ([0.1, -0.1, 0.1, 0.1], [0, 2, 4, 6], [0, 9, 0, 5, 0, 7, 0, 1], 0.5, [0, 1, 2, 5]),
        # equal gradients: the lower index comes
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 3, 0, -3, 0, 3, 0, 3], 0.5, [0, 1, 3, 4]),
        # no gradient at all: the lowest of those not kept, the removed among them
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 0, 0, 0, 0, 0, 0, 0], 0.5, [0, 1, 2, 4]),
        # a removed weight that is wanted most comes back
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 1, 8, 5, 0, 7, 0, 1], 0.5, [0, 2, 4, 5]),
        # floor(0.3 * 4) = 1
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 9, 0, 5, 0, 7, 0, 1], 0.3, [0, 1, 4, 6]),
        # nothing to do
        ([0.4, 0.1, 0.3, 0.2], [0, 2, 4, 6], [0, 9, 0, 5, 0, 7, 0, 1], 0.2, [0, 2, 4, 6]),
        # all of them, but no more than there are absent ones: k = min(6, 8 - 6) = 2
        ([6.0, 1.0, 5.0, 2.0, 4.0, 3.0], [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0, 2, 1], 1.0, [0, 2, 4, 5, 6, 7]),
        ([1.0, 2.0], [3, 5], [0, 9, 0, 5, 0, 7, 8, 1], 1.0, [1, 6]),
    ],
)
def test_removal_and_addition_by_hand(mu, index, gradient, rate, new):
    bnn = linear_with(mu, [0.1] * len(mu), index)
    update = one_update(bnn, [float(g) for g in gradient], rate=rate, removal="abs_mu", addition="mean")
    assert bnn.index.tolist() == new
    moves = update.moves.get("")
    assert (moves.removed.tolist() if moves else []) == sorted(set(index) - set(new))
    assert (moves.added.tolist() if moves else []) == sorted(set(new) - set(index))
    assert update.count == len(set(new) - set(index))


def test_the_criterion_decides_who_leaves():
    """Weight 0 has the larger |mu|, weight 2 the larger |mu| / sigma."""
    for removal, leaves in [("abs_mu", 2), ("snr", 0), ("snr_abs", 0), ("mean_abs", 2), (lambda m, s: s, 2)]:
        bnn = linear_with([0.5, 0.4], [0.9, 0.1], [0, 2])
        update = one_update(bnn, [0.0, 0, 0, 0, 0, 0, 0, 5], rate=0.5, removal=removal)
        assert update.moves[""].removed.tolist() == [leaves]


@pytest.mark.parametrize(("fresh_sigma", "want"), [("mean", (0.3 + 0.5) / 2), (0.02, 0.02)])
def test_fresh_weights_start_at_zero_with_the_sigma_asked_for(fresh_sigma, want):
    bnn = linear_with([0.4, 0.1, 0.3], [0.3, 0.9, 0.5], [0, 2, 4])
    one_update(bnn, [0.0, 9, 0, 0, 0, 0, 0, 0], rate=0.4, removal="abs_mu", addition="mean", fresh_sigma=fresh_sigma)
    assert bnn.index.tolist() == [0, 1, 4]
    assert bnn.mu.tolist() == pytest.approx([0.4, 0.0, 0.3])
    assert bnn.sigma.tolist() == pytest.approx([0.3, want, 0.5])


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


@settings(max_examples=25, deadline=None)
@given(
    density=st.floats(0.05, 1.0),
    rates=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
    optimizer=st.sampled_from(list(OPTIMIZERS)),
    removal=st.sampled_from(["abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs", "snr_exp_abs", "random"]),
    addition=st.sampled_from(["sample", "mean", "random"]),
    allocation=st.sampled_from(["uniform", "erk"]),
    every=st.integers(1, 3),
    data=st.data(),
)
def test_invariants_under_any_sequence_of_updates(
    density, rates, optimizer, removal, addition, allocation, every, data
):
    mc_steps = data.draw(st.integers(1, every))
    bnn = ssvi.to_bnn(net(), density, allocation=allocation, seed=0)
    opt = OPTIMIZERS[optimizer](bnn.parameters())
    counts = {name: layer.posterior.s for name, layer in ssvi.layers(bnn)}
    objects = [id(p) for p in bnn.parameters()]
    elbo = ssvi.ELBO(bnn, train_size=100)
    subspace = ssvi.Subspace(
        bnn,
        opt,
        every=every,
        rate=lambda t: rates[t % len(rates)],
        removal=removal,
        addition=addition,
        mc_steps=mc_steps,
    )
    for i in range(every * len(rates)):
        train_step(bnn, opt, i, elbo)
        before = {name: snapshot(layer.posterior, opt) for name, layer in ssvi.layers(bnn)}
        subspace.step()
        for name, layer in ssvi.layers(bnn):
            assert_moved(before[name], snapshot(layer.posterior, opt), layer.posterior)
    assert {name: len(layer.mu) for name, layer in ssvi.layers(bnn)} == counts
    assert [id(p) for p in bnn.parameters()] == objects


def snapshot(posterior, optimizer) -> dict[str, torch.Tensor]:
    """Everything that belongs to a live weight, by name."""
    tensors = {"index": posterior.index, "mu": posterior.mu, "rho": posterior.rho}
    for which in ("mu", "rho"):
        parameter = getattr(posterior, which)
        tensors[f"{which}.grad"] = parameter.grad
        state = optimizer.state.get(parameter, {})
        tensors |= {f"{which}.{k}": v for k, v in state.items() if torch.is_tensor(v) and v.shape == parameter.shape}
    return {k: v.detach().clone() for k, v in tensors.items()}


def assert_moved(before, after, posterior) -> None:
    """Survivors keep everything to the bit; fresh weights start with mu = 0, zero moments and one common sigma."""
    assert (after["index"].diff() > 0).all()
    assert after["index"].min() >= 0
    assert after["index"].max() < posterior.d
    old = {position: i for i, position in enumerate(before["index"].tolist())}
    source = torch.tensor([old.get(position, -1) for position in after["index"].tolist()])
    stayed, fresh = source >= 0, source < 0
    for key in before.keys() - {"index"}:
        assert torch.equal(after[key][stayed], before[key][source[stayed]]), key
        if key != "rho":
            assert (after[key][fresh] == 0).all(), key
    assert after["rho"][fresh].unique().numel() <= 1


def test_density_one_is_dense_variational_inference_step_for_step(dense_kernel):
    """An independent dense VI with the same noise: the same losses and the same phi."""
    torch.manual_seed(0)
    layer = nn.Conv2d(2, 4, 3)
    bnn = ssvi.to_bnn(layer, 1.0, prior_sigma=0.3, sigma_init=0.05)
    mu = layer.weight.detach().clone().requires_grad_()
    bias = layer.bias.detach().clone().requires_grad_()
    rho = torch.zeros_like(mu).requires_grad_()
    ours = torch.optim.SGD(bnn.parameters(), lr=0.1, momentum=0.9)
    theirs = torch.optim.SGD([bias, mu, rho], lr=0.1, momentum=0.9)
    elbo = ssvi.ELBO(bnn, train_size=50)
    subspace = ssvi.Subspace(bnn, ours, every=2, rate=0.5)
    for step in range(6):
        x = torch.randn(4, 2, 6, 6, generator=torch.Generator().manual_seed(step))
        torch.manual_seed(step)
        loss = elbo(bnn(x).square().mean())
        ours.zero_grad()
        loss.backward()
        ours.step()
        assert subspace.step() is None or subspace.last.count == 0
        torch.manual_seed(step)
        sigma = 0.05 * torch.exp(10 * rho)
        std = F.conv2d(x**2, sigma**2).sqrt()
        y = F.conv2d(x, mu, bias) + std * torch.randn_like(std)
        kl = (torch.log(0.3 / sigma) + (sigma**2 + mu**2) / (2 * 0.3**2) - 0.5).sum()
        reference = y.square().mean() + kl / 50
        theirs.zero_grad()
        reference.backward()
        theirs.step()
        torch.testing.assert_close(loss, reference)
    torch.testing.assert_close(bnn.mu, mu.flatten())
    torch.testing.assert_close(bnn.sigma, 0.05 * torch.exp(10 * rho).flatten())
    assert torch.equal(bnn.gamma, torch.ones_like(bnn.gamma))


class MaskedRigL:
    """RigL (Evci 2020) over dense weights and masks, with nothing of ours: the independent reference."""

    def __init__(self, net, masks, rate):
        self.weights = [m.weight for m in net if hasattr(m, "weight")]
        self.masks, self.rate = masks, rate
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def step(self, update: bool) -> None:
        dense = [w.grad.clone() for w in self.weights]
        for w, mask in zip(self.weights, self.masks, strict=True):
            w.grad *= mask
        self.optimizer.step()
        for w, mask, grad in zip(self.weights, self.masks, dense, strict=True):
            if update:
                self._update(w, mask, grad)
            with torch.no_grad():
                w *= mask
                self.optimizer.state[w]["momentum_buffer"] *= mask

    def _update(self, w, mask, grad):
        flat, k = mask.view(-1), int(self.rate * mask.sum())
        live = flat.nonzero().flatten()
        drop = live[w.detach().abs().flatten()[live].argsort(descending=True, stable=True)[len(live) - k :]]
        was = flat.clone()
        flat[drop] = 0
        score = grad.abs().flatten().masked_fill(flat.bool(), -1)
        flat[score.argsort(descending=True, stable=True)[:k]] = 1
        with torch.no_grad():
            fresh = (flat - was).clamp_min(0).view_as(w).bool()
            w[fresh] = 0
            self.optimizer.state[w]["momentum_buffer"][fresh] = 0


def test_sigma_to_zero_with_abs_mu_is_rigl():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net().double(), 0.3, sigma_init=1e-20)
    plain = ssvi.mean(bnn)
    masks = [layer.gamma.double() for _, layer in ssvi.layers(bnn)]
    rigl = MaskedRigL(plain, masks, 0.3)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    subspace = ssvi.Subspace(bnn, optimizer, every=3, rate=0.3, removal="abs_mu")
    moved = 0
    for step in range(15):
        x, y = batch(step)
        for model in (bnn, plain):
            model.zero_grad()
            F.cross_entropy(model(x.double()), y).backward()
        optimizer.step()
        update = subspace.step()
        rigl.step(update is not None)
        moved += update.count if update else 0
        for (_, layer), mask, weight in zip(ssvi.layers(bnn), masks, rigl.weights, strict=True):
            assert torch.equal(layer.gamma, mask.bool())
            torch.testing.assert_close(layer.posterior.dense(layer.mu), weight)
    assert moved > 20


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
    plain = ssvi.mean(bnn)
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
        held = [ear.wanted for ear in subspace._ears.values()]
        assert all(len(w.live) + len(w.absent) <= 2 * len(w.live) for w in held), "s-sized, not d-sized"
        subspace.step()
    assert len(alive) == 6, "three layers, on the two update steps alone"
    assert most == 1
    assert not any(ref() is not None for ref in alive)


def test_gradient_accumulation_clipping_and_parameter_groups():
    """Micro-batches before each step, a norm clip, and groups of their own for mu and rho."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(net(), 0.2)
    of_rho = [layer.posterior.rho for _, layer in ssvi.layers(bnn)]
    rest = [p for p in bnn.parameters() if all(p is not r for r in of_rho)]
    sgd, adam = torch.optim.SGD(rest, lr=0.05, momentum=0.9), torch.optim.Adam(of_rho, lr=1e-3)
    subspace = ssvi.Subspace(bnn, [sgd, adam], every=2, rate=0.3)
    for i in range(6):
        sgd.zero_grad(set_to_none=False)
        adam.zero_grad(set_to_none=False)
        for micro in range(2):
            x, y = batch(10 * i + micro)
            (F.cross_entropy(bnn(x), y) / 2).backward()
        nn.utils.clip_grad_norm_(bnn.parameters(), 0.1)
        sgd.step()
        adam.step()
        update = subspace.step()
        assert (update is None) == (i % 2 == 0)
    assert subspace.t == 3


def test_a_forward_pass_without_backward_leaves_no_trace():
    """A graph that is thrown away must not be waited for."""
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5)
    bnn(batch(0)[0])
    train_step(bnn, optimizer, 1)
    assert subspace.step().count > 0


def test_a_layer_that_took_no_part_keeps_its_support():
    bnn = ssvi.to_bnn(nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)]), 0.3)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.5)
    before = bnn[1].index.clone()
    bnn[0](torch.randn(4, 6)).square().sum().backward()
    update = subspace.step()
    assert set(update.moves) == {"0"}
    assert torch.equal(bnn[1].index, before)


def test_until_freezes_gamma():
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.5, until=5)
    happened = []
    for i in range(10):
        train_step(bnn, optimizer, i)
        happened.append(subspace.step() is not None)
    assert [i + 1 for i, did in enumerate(happened) if did] == [2, 4]


@pytest.mark.parametrize("mc_steps", [1, 2])
@pytest.mark.parametrize("stop", [3, 4, 5])
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_save_load_and_go_on_bit_for_bit(optimizer, stop, mc_steps, tmp_path):
    def fresh():
        bnn = ssvi.to_bnn(net(), 0.2, seed=0, mu_init=0.1)
        opt = OPTIMIZERS[optimizer](bnn.parameters())
        elbo = ssvi.ELBO(bnn, train_size=100, beta=ssvi.schedules.linear(0.1, steps=6))
        rate = ssvi.schedules.cosine(0.5, steps=3)
        return bnn, opt, elbo, ssvi.Subspace(bnn, opt, every=3, rate=rate, mc_steps=mc_steps)

    def run(parts, steps):
        bnn, opt, elbo, subspace = parts
        losses = []
        for i in steps:
            losses.append(train_step(bnn, opt, i, elbo))
            subspace.step()
        return losses

    torch.manual_seed(0)
    whole = fresh()
    start = copy.deepcopy(whole[0].state_dict())
    want = run(whole, range(9))
    first = fresh()
    first[0].load_state_dict(start)
    run(first, range(stop))
    torch.save([part.state_dict() for part in first], tmp_path / "state.pt")
    second = fresh()
    for part, state in zip(second, torch.load(tmp_path / "state.pt", weights_only=True), strict=True):
        part.load_state_dict(state)
    assert run(second, range(stop, 9)) == want[stop:]
    for a, b in zip(whole[0].state_dict().values(), second[0].state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "every=0"),
        ({"rate": 1.5}, r"rate\(0\)=1.5 must be in \[0, 1\]"),
        ({"rate": lambda t: -0.1}, r"rate\(0\)=-0.1"),
        ({"removal": "magnitude"}, "removal='magnitude'"),
        ({"addition": "gradient"}, "addition='gradient'"),
        ({"mc_steps": 0}, "mc_steps=0"),
        ({"mc_steps": 3}, "mc_steps=3 must be between 1 and every=2"),
        ({"fresh_sigma": 0.0}, "fresh_sigma=0.0"),
        ({"fresh_sigma": "median"}, "fresh_sigma='median'"),
    ],
)
def test_bad_options_are_named(options, message):
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=message):
        ssvi.Subspace(bnn, optimizer, **{"every": 2, "rate": 0.3, **options})


def test_an_optimizer_of_another_network_is_refused():
    plain = net()
    bnn = ssvi.to_bnn(plain, 0.2)
    with pytest.raises(ValueError, match=r"optimizer does not hold 0\.posterior\.mu"):
        ssvi.Subspace(bnn, torch.optim.SGD(plain.parameters(), lr=0.1), every=1, rate=0.3)


@pytest.mark.parametrize("wrong", ["a schedule that leaves its range", "no backward", "removal", "NaN", "state"])
def test_an_error_changes_nothing(wrong):
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1, momentum=0.9)
    rate = (lambda t: 0.3 if t == 0 else 7.0) if "schedule" in wrong else 0.3
    removal = (lambda mu, sigma: mu / 0 * 0) if wrong == "removal" else "snr"
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, removal=removal)
    subspace.rate = rate if callable(rate) else subspace.rate
    x, y = batch(0)
    if wrong != "no backward":
        F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
    if "schedule" in wrong:
        subspace.t = 1
    if wrong == "state":
        optimizer.state[bnn[4].posterior.rho]["history"] = [torch.zeros(3)]
    before = copy.deepcopy(bnn.state_dict())
    if wrong == "NaN":
        with pytest.raises(FloatingPointError, match="addition: NaN"):
            bnn(x * torch.nan).sum().backward()
    else:
        with pytest.raises(
            (ValueError, RuntimeError, FloatingPointError), match=r"rate\(1\)=7|no gradient|removal|history"
        ):
            subspace.step()
    assert all(torch.equal(before[k], v) for k, v in bnn.state_dict().items())
    assert subspace.t == (1 if "schedule" in wrong else 0)
