"""AEB on a whole network: the energy by hand, pruning, resuming, training, mistakes."""

import io
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from sampling import small_net, some_batches
from torch import nn

from ssvi.allocation import same_density
from ssvi.data import load
from ssvi.inference.samplers import SGHMC
from ssvi.inference.spike_and_slab import SpikeAndSlab, inv_temperature
from ssvi.nn.models import mlp


def spike_and_slab(net: nn.Module, **changes) -> SpikeAndSlab:
    return SpikeAndSlab(
        net, **({"train_size": 40, "density": 0.3, "steps": 100, "dense": ("0",), "v0": 1.0, "v1": 0.1} | changes)
    )


def train(net, optimizer, prior, batches) -> list[int]:
    changed = []
    for x, y in batches:
        loss = prior(F.cross_entropy(net(x), y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        changed.append(prior.step(x, y))
    return changed


def test_gap_50_is_the_papers_step_size_and_other_gaps_go_as_far():
    net = small_net()
    literal = spike_and_slab(net, gap=50.0)
    assert literal.gain(7) == pytest.approx(0.02 / 1007**0.75, rel=1e-12)
    assert spike_and_slab(net, gap=50.0, C=1.0, p=0.0).gain(3) == 1.0

    def stays(run: SpikeAndSlab, steps: int) -> float:
        return math.exp(sum(math.log1p(-run.gain(t)) for t in range(1, steps + 1)))

    assert stays(literal, 50_000) == pytest.approx(0.47, abs=0.005)  # what the facts say of the paper's run
    assert stays(spike_and_slab(net, steps=1000), 1000) == pytest.approx(0.47, abs=0.01)


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


def test_the_schedule_of_the_temperature_is_the_papers():
    schedule = inv_temperature(every=50)
    assert (schedule(0), schedule(49)) == (1000.0, 1000.0)
    assert schedule(50) == pytest.approx(1005.0)
    assert schedule(50_000) == pytest.approx(1000 * 1.005**1000)


def test_pruning_is_monotone_and_exact_at_the_end():
    net = small_net()
    run = spike_and_slab(net)
    sampler = SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=100.0)
    want = same_density([(7, 8), (3, 7)], 0.3)
    lives, before = [1.0], [w.detach().clone() != 0 for w in (net[3].weight, net[5].weight)]
    for x, y in some_batches(100):
        (changed,) = train(net, sampler, run, [(x, y)])
        now = [w != 0 for w in (net[3].weight, net[5].weight)]
        assert changed == sum(int((a != b).sum()) for a, b in zip(before, now, strict=True))
        lives, before = [*lives, run.live_share], now
        assert run.live_share == sum(int(m.sum()) for m in now) / 77
        assert run.reached == (run.t >= 75)
        if run.reached:
            assert [int(m.sum()) for m in now] == want
    assert all(a >= b for a, b in itertools.pairwise(lives))
    assert lives[10] == pytest.approx(1 - 0.7 * (1 - 0.99**100), abs=1.5 / 77)
    assert (net[0].weight != 0).all()


def test_zeros_revive_because_the_velocity_stays():
    net = small_net()
    run = spike_and_slab(net, hold=1.0)
    assert not run.reached
    sampler = SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=10.0)
    changed = train(net, sampler, run, some_batches(60))
    dead = ~run.priors["3"].mask
    assert (sampler.state[net[3].weight]["velocity"][dead] != 0).all()
    assert sum(changed[1:]) > 10
    assert all(count % 2 == 0 for count in changed[1:])  # the density is constant: one weight goes for each that comes


def test_tied_weights_are_pruned_once():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4))
    net[2].weight = net[1].weight
    run = SpikeAndSlab(net, train_size=10, density=0.5, steps=10, v0=1.0, v1=0.1, dense=("0",))
    assert list(run.priors) == ["1"]
    assert sum(parameter.numel() for parameter in run.others) == 16 + 3 * 4


def test_resume_is_bit_for_bit():
    def everything():
        net = small_net()
        run = spike_and_slab(net, adapt=("rho", "delta", "sigma"))
        return net, SGHMC(net.parameters(), 0.1, train_size=40, inv_temperature=10.0), run

    batches = some_batches(60)
    whole = everything()
    changed = train(*whole, batches[:35])
    file = io.BytesIO()
    torch.save([part.state_dict() for part in whole] + [torch.get_rng_state()], file)
    changed = train(*whole, batches[35:])

    again = everything()
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
    run = SpikeAndSlab(net, train_size=N, density=0.1, steps=steps, v0=1.0, v1=0.1, dense=("1",))
    sampler = SGHMC(net.parameters(), 0.05, train_size=N, inv_temperature=1000.0)
    decay = torch.optim.lr_scheduler.LambdaLR(sampler, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    temperature = inv_temperature(every=steps / 1000)
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


def test_errors_of_the_run_say_what_to_do():
    run = spike_and_slab(small_net())
    with pytest.raises(RuntimeError, match="no call yet"):
        _ = run.terms
    with pytest.raises(ValueError, match="mean over the batch"):
        run(torch.zeros(3))
    with pytest.raises(ValueError, match="layers"):
        run.load_state_dict({"t": 0, "priors": {}})


def test_v0_and_v1_have_no_default_here():
    """The recipe's default is the only one."""
    with pytest.raises(TypeError, match="'v0' and 'v1'"):
        SpikeAndSlab(small_net(), train_size=40, density=0.3, steps=100)


def test_the_mask_is_called_live_in_checkpoints():
    """So that those of earlier versions load."""
    run = spike_and_slab(small_net())
    state = run.state_dict()
    assert set(state["priors"]["3"]) == {"rho", "k0", "k1", "live", "delta", "sigma2"}
    state["priors"]["3"]["live"] = torch.zeros(7, 8, dtype=torch.bool)
    run.load_state_dict(state)
    assert run.live_share == 21 / 77
