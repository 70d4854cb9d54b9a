"""Updates of gamma inside a training loop: what users do around them, saving and loading, and mistakes."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from updates import OPTIMIZERS, batch, net, train_step

import ssvi


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


GROWTH = {
    "one batch": {},
    "two batches": {"mc_steps": 2},
    "candidates": {"mc_steps": 2, "candidates": 2},
    "snr": {"mc_steps": 3, "candidates": 2, "addition": "snr"},
    "grace": {"grace": 1},
}


@pytest.mark.parametrize("growth", GROWTH)
@pytest.mark.parametrize("stop", [3, 4, 5])
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_save_load_and_go_on_bit_for_bit(optimizer, stop, growth, tmp_path):
    def fresh():
        bnn = ssvi.to_bnn(net(), 0.2, seed=0, mu_init=0.1)
        opt = OPTIMIZERS[optimizer](bnn.parameters())
        elbo = ssvi.ELBO(bnn, train_size=100, beta=ssvi.schedules.linear(0.1, steps=6))
        rate = ssvi.schedules.cosine(0.5, steps=3)
        return bnn, opt, elbo, ssvi.Subspace(bnn, opt, every=3, rate=rate, **GROWTH[growth])

    def run(training, steps):
        bnn, opt, elbo, subspace = training
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


def test_the_sums_that_an_earlier_version_saved_are_read():
    """It saved the sums of all positions and their number for each layer, and no ages."""

    def fresh():
        bnn = ssvi.to_bnn(net(), 0.2, seed=0, mu_init=0.1)
        optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
        return bnn, optimizer, ssvi.Subspace(bnn, optimizer, every=2, rate=0.5, mc_steps=2)

    bnn, optimizer, subspace = fresh()
    start = copy.deepcopy(bnn.state_dict())
    train_step(bnn, optimizer, 0)
    subspace.step()
    state = subspace.state_dict()
    sums = {name: (layer["total"][0].clone(), layer["batches"]) for name, layer in state["sums"].items()}
    again, other, resumed = fresh()
    again.load_state_dict(start)
    train_step(again, other, 0)
    resumed.load_state_dict({"calls": 1, "t": 0, "sums": sums})
    for net_, optimizer_, subspace_ in ((bnn, optimizer, subspace), (again, other, resumed)):
        train_step(net_, optimizer_, 1)
        subspace_.step()
    assert len(sums) == 3
    assert all(torch.equal(a, b) for a, b in zip(bnn.state_dict().values(), again.state_dict().values(), strict=True))


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
        ({"addition": "snr"}, "addition='snr' needs mc_steps of 2 or more, not mc_steps=1"),
        ({"candidates": 0}, "candidates=0"),
        ({"grace": -1}, "grace=-1"),
        ({"micro_batches": 0}, "micro_batches=0"),
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


@pytest.mark.parametrize("wrong", ["a schedule that leaves its range", "removal", "addition", "state"])
def test_an_error_changes_nothing(wrong):
    bnn = ssvi.to_bnn(net(), 0.2)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1, momentum=0.9)
    rate = (lambda t: 0.3 if t == 0 else 7.0) if "schedule" in wrong else 0.3
    removal = (lambda mu, sigma: mu / 0 * 0) if wrong == "removal" else "snr"
    addition = (lambda gradient: gradient / 0 * 0) if wrong == "addition" else "sample"
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3, removal=removal, addition=addition)
    subspace.rate = rate if callable(rate) else subspace.rate
    x, y = batch(0)
    F.cross_entropy(bnn(x), y).backward()
    optimizer.step()
    if "schedule" in wrong:
        subspace.t = 1
    if wrong == "state":
        optimizer.state[bnn[4].posterior.rho]["history"] = [torch.zeros(3)]
    before = copy.deepcopy(bnn.state_dict())
    with pytest.raises((ValueError, FloatingPointError), match=r"rate\(1\)=7|removal: NaN|addition: NaN|history"):
        subspace.step()
    assert all(torch.equal(before[k], v) for k, v in bnn.state_dict().items())
    assert subspace.t == (1 if "schedule" in wrong else 0)
