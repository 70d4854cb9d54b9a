"""AEB: the adaptive prior against numbers worked out by hand, the sampler against its stationary law, pruning, resuming."""

import io
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ssvi.allocation import uniform
from ssvi.data import load
from ssvi.inference import spike_and_slab as aeb
from ssvi.inference.sghmc import SGHMC
from ssvi.inference.spike_and_slab import Prior, SpikeAndSlab
from ssvi.nn.models import mlp

WEIGHTS = (0.3, -0.02, 0.0, 0.004, -1.1)


def prior(weights=WEIGHTS, **changes) -> Prior:
    weight = nn.Parameter(torch.tensor(weights, dtype=torch.float64))
    return Prior(weight, **({"v0": 0.1, "v1": 0.02, "a": 7.0, "b": 3.0, "nu": 5.0, "lam": 2.0} | changes))


def gauss(w: float, variance: float) -> float:
    return math.exp(-w * w / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def laplace(w: float, scale: float) -> float:
    return math.exp(-abs(w) / scale) / (2 * scale)


def small_net(seed=0) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 7), nn.Tanh(), nn.Linear(7, 3))
    return net.double()


def spike_and_slab(net: nn.Module, **changes) -> SpikeAndSlab:
    return SpikeAndSlab(net, **({"train_size": 40, "density": 0.3, "steps": 100, "dense": ("0",)} | changes))


def train(net, optimizer, aeb_prior, batches) -> list[int]:
    changed = []
    for x, y in batches:
        loss = aeb_prior(F.cross_entropy(net(x), y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        changed.append(aeb_prior.step(x, y))
    return changed


def some_batches(n: int, seed=1) -> list[tuple[torch.Tensor, torch.Tensor]]:
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, 6, dtype=torch.float64, generator=g)
    return [(part, (part[:, 0] > 0).long() + (part[:, 1] > 0).long()) for part in x]


# The prior.


def test_responsibilities_are_the_ratio_of_the_densities():
    q = prior(delta=0.3, sigma2=1.7)
    sigma = math.sqrt(1.7)
    slab = [0.3 * gauss(w, 1.7 * 0.02) for w in WEIGHTS]
    spike = [0.7 * laplace(w, sigma * 0.1) for w in WEIGHTS]
    want = [s / (s + t) for s, t in zip(slab, spike, strict=True)]
    assert q.responsibility().tolist() == pytest.approx(want, rel=1e-12)


def test_responsibilities_survive_weights_whose_densities_underflow():
    q = prior((1e3, -1e3, 1e-300), v0=0.005, v1=1e-5)
    found = q.responsibility()
    assert found[:2].tolist() == [0.0, 0.0]
    assert found[2] == pytest.approx(gauss(0, 1e-5) / (gauss(0, 1e-5) + laplace(0, 0.005)), rel=1e-12)


def test_one_adaptation_by_hand():
    q, step = prior(), 0.25
    q.adapt(step, ("rho", "delta", "sigma"))
    rho, k0, k1 = [], [], []
    for w in WEIGHTS:
        slab, spike = 0.5 * gauss(w, 0.02), 0.5 * laplace(w, 0.1)
        rho.append(0.75 * 0.5 + 0.25 * slab / (slab + spike))
        k0.append(0.75 * 5e-4 + 0.25 * (1 - rho[-1]) / 0.1)
        k1.append(0.75 * 5e-4 + 0.25 * rho[-1] / 0.02)
    assert q.rho.tolist() == pytest.approx(rho, rel=1e-12)
    assert q.k0.tolist() == pytest.approx(k0, rel=1e-12)
    assert q.k1.tolist() == pytest.approx(k1, rel=1e-12)
    assert q.delta == pytest.approx(0.75 * 0.5 + 0.25 * (sum(rho) + 7 - 1) / (7 + 3 + 5 - 2), rel=1e-12)
    r_a = 5 + 5 + 2
    r_b = sum(abs(w) * k for w, k in zip(WEIGHTS, k0, strict=True))
    r_c = sum(w * w * k for w, k in zip(WEIGHTS, k1, strict=True)) + 5 * 2
    s = (r_b + math.sqrt(r_b**2 + 4 * r_a * r_c)) / (2 * r_a)
    assert q.sigma2 == pytest.approx(0.75 * 1.0 + 0.25 * s**2, rel=1e-12)


def test_a_full_step_is_em_and_never_lowers_the_log_posterior():
    """With step 1 the updates are exact EM, so log p(w, delta, sigma^2) rises until it is stationary."""

    def log_posterior(delta: float, sigma2: float) -> float:
        sigma = math.sqrt(sigma2)
        likelihood = [delta * gauss(w, sigma2 * 0.02) + (1 - delta) * laplace(w, sigma * 0.1) for w in WEIGHTS]
        of_delta = 6 * math.log(delta) + 2 * math.log(1 - delta)
        of_sigma = -(5 / 2 + 1) * math.log(sigma2) - 5 * 2 / (2 * sigma2)
        return sum(map(math.log, likelihood)) + of_delta + of_sigma

    q, found = prior(), []
    for _ in range(300):
        found.append(log_posterior(q.delta, q.sigma2))
        q.adapt(1.0, ("rho", "delta", "sigma"))
    assert all(after > before - 1e-12 for before, after in itertools.pairwise(found))
    assert found[20] > found[0] + 0.1
    h = 1e-5
    slope = (log_posterior(q.delta + h, q.sigma2) - log_posterior(q.delta - h, q.sigma2)) / (2 * h)
    assert slope == pytest.approx(0, abs=1e-6)
    slope = (log_posterior(q.delta, q.sigma2 + h) - log_posterior(q.delta, q.sigma2 - h)) / (2 * h)
    assert slope == pytest.approx(0, abs=1e-6)


def test_averages_converge_to_the_em_values_and_nothing_adapts_unasked():
    q = prior()
    for t in range(4000):
        q.adapt(1 / (1 + t) ** 0.75, ("rho",))
    rho = q.responsibility()
    torch.testing.assert_close(q.rho, rho)
    torch.testing.assert_close(q.k0, (1 - rho) / 0.1)
    torch.testing.assert_close(q.k1, rho / 0.02)
    assert (q.delta, q.sigma2) == (0.5, 1.0)
    fixed = prior()
    fixed.adapt(0.5, ())
    assert (fixed.rho == 0.5).all()
    assert (fixed.k0 == 5e-4).all()
    assert (fixed.k1 == 5e-4).all()


def test_gap_50_is_the_papers_step_size_and_other_gaps_go_as_far():
    net = small_net()
    literal = spike_and_slab(net, gap=50.0)
    assert literal.gain(7) == pytest.approx(0.02 / 1007**0.75, rel=1e-12)
    assert spike_and_slab(net, gap=50.0, C=1.0, p=0.0).gain(3) == 1.0

    def stays(run: SpikeAndSlab, steps: int) -> float:
        return math.exp(sum(math.log1p(-run.gain(t)) for t in range(1, steps + 1)))

    assert stays(literal, 50_000) == pytest.approx(0.47, abs=0.005)  # what the facts say of the paper's run
    assert stays(spike_and_slab(net, steps=1000), 1000) == pytest.approx(0.47, abs=0.01)


# The energy.


def test_energy_by_hand_and_its_gradient_by_finite_differences():
    net = small_net()
    run = spike_and_slab(net, weight_decay=0.01, v0=0.2, v1=0.05)
    for _ in range(3):
        run.step(*some_batches(1)[0])
    sparse, others = 0.0, 0.0
    for name, parameter in net.named_parameters():
        if name in ("3.weight", "5.weight"):
            q = run.priors[name.removesuffix(".weight")]
            for w, k0, k1 in zip(*(t.flatten().tolist() for t in (parameter, q.k0, q.k1)), strict=True):
                sparse += w * w * k1 / 2 + abs(w) * k0
        else:
            others += 0.5 * 0.01 * 40 * parameter.square().sum().item()
    assert run.penalty().item() == pytest.approx(sparse + others, rel=1e-12)
    assert set(run.priors) == {"3", "5"}

    nll = torch.tensor(0.7, dtype=torch.float64)
    assert run(nll).item() == pytest.approx(0.7 + (sparse + others) / 40, rel=1e-12)
    assert (run.terms.nll, run.terms.beta) == (0.7, 1.0)
    assert run.terms.kl == pytest.approx(sparse + others, rel=1e-12)


def test_gradient_of_the_energy():
    q = prior((0.3, -0.02, 0.01, 0.004, -1.1))
    q.adapt(0.3, ("rho", "sigma"))
    weight = q.weight

    def energy(value):
        q.weight = value
        return q.energy()

    assert torch.autograd.gradcheck(energy, (weight,), eps=1e-7)


def test_the_energy_is_minus_the_expected_log_prior_up_to_a_constant():
    """With rho, k0, k1 of an E-step at w, its gradient is that of -log p(w): the identity behind EM."""
    q = prior()
    q.adapt(1.0, ("rho",))
    (found,) = torch.autograd.grad(q.energy(), q.weight)
    for w, slope in zip(WEIGHTS, found.tolist(), strict=True):
        if w:  # at 0 the Laplace has a corner
            low, high = (-math.log(gauss(v, 0.02) + laplace(v, 0.1)) for v in (w - 1e-6, w + 1e-6))
            assert slope == pytest.approx((high - low) / 2e-6, rel=1e-6)


# The sampler.


def test_without_noise_it_is_sgd_with_momentum():
    nets = small_net(), small_net()
    sampler = SGHMC(nets[0].parameters(), lr=0.1, momentum=0.9, train_size=40, inv_temperature=math.inf)
    sgd = torch.optim.SGD(nets[1].parameters(), lr=0.1, momentum=0.9)
    before = torch.get_rng_state()
    for x, y in some_batches(50):
        for net, optimizer in zip(nets, (sampler, sgd), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    for one, other in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("lr", "momentum", "temperature"), [(0.02, 0.9, 1.0), (1.0, 0.6, 1.0), (0.5, 0.0, 0.25)])
def test_stationary_law_on_a_gaussian_posterior(lr, momentum, temperature):
    """N observations of unit variance with mean ybar: theta | data ~ N(ybar, T / N). 20 000 chains, all seen at one time.

    The variance is that of the AR(2) process which the recursion is, and that is T / N up to the size of the step.
    """
    torch.manual_seed(0)
    N, ybar, chains = 25, 1.5, 20_000
    theta = nn.Parameter(torch.zeros(chains, dtype=torch.float64))
    sampler = SGHMC([theta], lr, momentum, train_size=N, inv_temperature=1 / temperature)
    for _ in range(int(40 / lr * (1 - momentum)) + 100):
        sampler.zero_grad()
        (0.5 * (theta - ybar).square().sum()).backward()  # the mean loss of each chain, summed over the chains
        sampler.step()
    eta, exact = lr / N, temperature / N
    discrete = exact * (1 - eta / (2 * (1 - momentum))) / (1 - lr / (2 * (1 + momentum)))
    assert theta.mean().item() == pytest.approx(ybar, abs=4 * math.sqrt(discrete / chains))
    assert theta.var().item() == pytest.approx(discrete, rel=4 * math.sqrt(2 / chains))
    if lr == 0.02:
        assert theta.var().item() == pytest.approx(exact, rel=0.01 + 4 * math.sqrt(2 / chains))


def test_the_schedule_of_the_temperature_is_the_papers():
    schedule = aeb.inv_temperature(every=50)
    assert (schedule(0), schedule(49)) == (1000.0, 1000.0)
    assert schedule(50) == pytest.approx(1005.0)
    assert schedule(50_000) == pytest.approx(1000 * 1.005**1000)


def test_the_temperature_of_a_group_can_be_changed_and_takes_effect():
    weight = nn.Parameter(torch.zeros(10_000, dtype=torch.float64))
    sampler = SGHMC([weight], lr=1.0, momentum=0.5, train_size=100)
    weight.grad = torch.zeros_like(weight)
    sampler.param_groups[0]["inv_temperature"] = 4.0
    torch.manual_seed(0)
    sampler.step()
    want = math.sqrt(2 * 0.01 * (1 - 0.5 - 0.005) / 4)
    assert weight.std().item() == pytest.approx(want, rel=4 / math.sqrt(20_000))


# The sparsity rule.


def test_pruning_is_monotone_and_exact_at_the_end():
    net = small_net()
    run = spike_and_slab(net)
    sampler = SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=100.0)
    want = uniform([(7, 8), (3, 7)], 0.3)
    lives, before = [1.0], [w.detach().clone() != 0 for w in (net[3].weight, net[5].weight)]
    for x, y in some_batches(100):
        (changed,) = train(net, sampler, run, [(x, y)])
        now = [w != 0 for w in (net[3].weight, net[5].weight)]
        assert changed == sum(int((a != b).sum()) for a, b in zip(before, now, strict=True))
        lives, before = [*lives, run.live], now
        assert run.live == sum(int(m.sum()) for m in now) / 77
        assert run.reached == (run.t >= 75)
        if run.reached:
            assert [int(m.sum()) for m in now] == want
    assert all(a >= b for a, b in itertools.pairwise(lives))
    assert lives[10] == pytest.approx(1 - 0.7 * (1 - 0.99**100), abs=1.5 / 77)
    assert (net[0].weight != 0).all()


def test_ties_go_to_the_lower_position():
    weight = torch.tensor([[1.0, -2.0, 2.0], [-1.0, 1.0, 0.0]])
    live = aeb.prune_(weight, 3, "layer")
    assert weight.tolist() == [[1.0, -2.0, 2.0], [0.0, 0.0, 0.0]]
    assert live.tolist() == [[True, True, True], [False, False, False]]


def test_zeros_revive_because_the_velocity_stays():
    net = small_net()
    run = spike_and_slab(net, hold=1.0)
    assert not run.reached
    sampler = SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=10.0)
    changed = train(net, sampler, run, some_batches(60))
    dead = ~run.priors["3"].live
    assert (sampler.state[net[3].weight]["velocity"][dead] != 0).all()
    assert sum(changed[1:]) > 10
    assert all(count % 2 == 0 for count in changed[1:])  # the density is held: for each that comes one goes


def test_tied_weights_are_pruned_once():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    net[2].weight = net[1].weight
    run = SpikeAndSlab(net, train_size=10, density=0.5, steps=10, dense=("0",))
    assert list(run.priors) == ["1"]
    assert sum(parameter.numel() for parameter in run.others) == 16 + 3 * 4


# Resuming, training, errors.


def test_resume_is_bit_for_bit():
    def parts():
        net = small_net()
        run = spike_and_slab(net, adapt=("rho", "delta", "sigma"))
        return net, SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=10.0), run

    batches = some_batches(60)
    whole = parts()
    changed = train(*whole, batches[:35])
    file = io.BytesIO()
    torch.save([part.state_dict() for part in whole] + [torch.get_rng_state()], file)
    changed = train(*whole, batches[35:])

    again = parts()
    file.seek(0)
    *states, random = torch.load(file, weights_only=True)
    for part, state in zip(again, states, strict=True):
        part.load_state_dict(state)
    torch.set_rng_state(random)
    assert train(*again, batches[35:]) == changed
    for one, other in zip(whole[0].parameters(), again[0].parameters(), strict=True):
        assert torch.equal(one, other)
    for one, other in zip(whole[2].priors.values(), again[2].priors.values(), strict=True):
        assert torch.equal(one.k0, other.k0)
        assert (one.delta, one.sigma2) == (other.delta, other.sigma2)
    assert whole[2].terms == again[2].terms


def test_digits_at_ten_percent_density():
    torch.manual_seed(0)
    data = load("digits")
    net, epochs = mlp(size=8, width=100), 30
    batches = data.batches(data.train, 64, drop_last=True)
    N, steps = len(data.train), epochs * len(batches)
    run = SpikeAndSlab(net, train_size=N, density=0.1, steps=steps, dense=("1",))
    sampler = SGHMC(net.parameters(), 0.05, train_size=N, inv_temperature=1000.0)
    decay = torch.optim.lr_scheduler.LambdaLR(sampler, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    temperature = aeb.inv_temperature(every=steps / 1000)
    for epoch in range(epochs):
        for x, y in batches.epoch(epoch):
            sampler.param_groups[0]["inv_temperature"] = temperature(run.t)
            train(net, sampler, run, [(x, y)])
            decay.step()
    assert run.reached
    assert int((net[3].weight != 0).sum() + (net[5].weight != 0).sum()) == round(0.1 * 11_000)
    with torch.no_grad():
        right = net(data.normalise(data.test.x)).argmax(1) == data.test.y
    assert right.double().mean() >= 0.9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_size": 0}, "train_size=0"),
        ({"density": 0.0}, "density=0.0"),
        ({"v1": -1.0}, "v1=-1.0"),
        ({"gap": 0.0}, "gap=0.0"),
        ({"hold": 2.0}, "hold=2.0"),
        ({"a": 1.0}, "a=1.0"),
        ({"adapt": ("kappa",)}, "kappa"),
        ({"dense": ("9",)}, r"dense=\['9'\]"),
        ({"dense": ("0", "3", "5")}, "no layer to prune"),
    ],
)
def test_errors_name_the_argument(changes, message):
    with pytest.raises(ValueError, match=message):
        spike_and_slab(small_net(), **changes)


def test_errors_of_the_sampler_and_of_the_run():
    weight = nn.Parameter(torch.zeros(1))
    for changes, message in [({"train_size": 0}, "train_size=0"), ({"momentum": 1.0}, "momentum=1.0"),
                             ({"inv_temperature": 0.0}, "inv_temperature=0.0"), ({"lr": -1.0}, "lr=-1.0"),
                             ({"lr": 3.0}, "lower lr or momentum")]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            SGHMC([weight], **({"lr": 0.1, "train_size": 10} | changes))
    sampler = SGHMC([weight], 0.1, train_size=10)
    sampler.param_groups[0]["lr"] = 3.0
    with pytest.raises(ValueError, match="lower lr or momentum"):
        sampler.step()
    run = spike_and_slab(small_net())
    with pytest.raises(RuntimeError, match="no call yet"):
        _ = run.terms
    with pytest.raises(ValueError, match="mean over the batch"):
        run(torch.zeros(3))
    with pytest.raises(ValueError, match="layers"):
        run.load_state_dict({"t": 0, "priors": {}})
    with pytest.raises(FloatingPointError, match="layer 'x'"):
        aeb.prune_(torch.tensor([math.nan, 1.0]), 1, "x")
