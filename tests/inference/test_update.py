"""One update of gamma: tables worked out by hand, and invariants under any sequence of updates."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from updates import OPTIMIZERS, net, train_step

import ssvi
from ssvi.inference.moments import SECOND_MOMENTS


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


@pytest.mark.filterwarnings("ignore::ssvi.TrainingWarning")  # some of these steps are too large for sigma
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
    candidates, grace = data.draw(st.sampled_from([None, 1, 3])), data.draw(st.integers(0, 2))
    addition = data.draw(st.sampled_from([addition, "snr"])) if mc_steps > 1 else addition
    bnn = ssvi.to_bnn(net(), density, allocation=allocation, prior_sigma=0.1, sigma_init=0.01, mu_init="net", seed=0)
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
        candidates=candidates,
        grace=grace,
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
    """Survivors keep everything to the bit; fresh weights start with mu = 0, zero first moments, one common sigma and one
    common second moment."""
    assert (after["index"].diff() > 0).all()
    assert after["index"].min() >= 0
    assert after["index"].max() < posterior.d
    old = {position: i for i, position in enumerate(before["index"].tolist())}
    source = torch.tensor([old.get(position, -1) for position in after["index"].tolist()])
    stayed, fresh = source >= 0, source < 0
    for key in before.keys() - {"index"}:
        assert torch.equal(after[key][stayed], before[key][source[stayed]]), key
        if key == "rho" or key.partition(".")[2] in SECOND_MOMENTS:
            assert after[key][fresh].unique().numel() <= 1
        else:
            assert (after[key][fresh] == 0).all(), key
