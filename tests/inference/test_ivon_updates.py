"""IVON with updates of gamma: the bound falls, fresh weights and those that stay, and resuming."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.inference import removal as removals


def small_mlp(density: float = 0.2, **options: str) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(256, 10)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Linear(32, 3))
    return ssvi.to_bnn(net, density, prior_sigma=0.5, **options), x, y


def steps(bnn, optimizer, subspace, x, y, count: int, seed: int = 0) -> None:
    torch.manual_seed(seed)
    for _ in range(count):
        chosen = torch.randint(len(x), (64,))
        with optimizer.sampled():
            F.cross_entropy(bnn(x[chosen]), y[chosen]).backward()
        optimizer.step()
        subspace.step()


def bound(bnn, x, y) -> float:
    """The negative evidence lower bound per example, by 200 draws of theta."""
    torch.manual_seed(0)
    with torch.no_grad():
        nll = -ssvi.predict_samples(bnn.eval(), x, 200).log().gather(2, y.expand(200, -1)[:, :, None]).mean()
        bnn.train()
        return nll.item() + ssvi.kl(bnn).item() / len(x)


def test_the_bound_falls_and_the_posterior_does_not_collapse():
    bnn, x, y = small_mlp(density=1.0)
    optimizer = ssvi.IVON(bnn, lr=0.1, train_size=len(x), betas=(0.9, 0.99))
    subspace = ssvi.Subspace(bnn, optimizer, every=10**6, rate=0.0)
    bounds = [bound(bnn, x, y)]
    for round_ in range(3):
        steps(bnn, optimizer, subspace, x, y, 150, seed=round_)
        bounds.append(bound(bnn, x, y))
    assert bounds[-1] < 0.6 * bounds[0]
    accuracy = (ssvi.predict(bnn.eval(), x, 20).argmax(1) == y).double().mean()
    assert accuracy > 0.85
    sigma = torch.cat([layer.sigma for _, layer in ssvi.layers(bnn)])
    assert sigma.min() < 0.3, "the prior's is 0.5, and the data have narrowed some weights"


@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_fresh_weights_have_the_mean_h_and_others_keep_theirs(sigma_map):
    bnn, x, y = small_mlp(sigma_map=sigma_map)
    optimizer = ssvi.IVON(bnn, train_size=len(x), betas=(0.9, 0.99))
    staying, criterion = [], removals.resolve("snr_abs")
    subspace = ssvi.Subspace(
        bnn, optimizer, every=5, rate=0.3, removal="snr_abs",
        observe=lambda t, of_layers: staying.extend(layer.staying(criterion) for layer in of_layers),
    )  # fmt: skip
    steps(bnn, optimizer, subspace, x, y, 4)
    layer = bnn[0]
    before = {"index": layer.index.clone()} | {key: optimizer.state[layer.mu][key].clone() for key in ("g", "h")}
    torch.manual_seed(9)
    with optimizer.sampled():
        F.cross_entropy(bnn(x), y).backward()
    optimizer.step()
    stepped = {key: optimizer.state[layer.mu][key].clone() for key in ("g", "h")} | {"rho": layer.posterior.rho.clone()}
    assert subspace.step().count > 0
    now = optimizer.state[layer.mu] | {"rho": layer.posterior.rho}
    stays = torch.isin(layer.index, before["index"])
    kept = torch.isin(before["index"], layer.index)
    chosen_again = ~staying[0] & kept
    assert chosen_again.any()
    for key in ("g", "h", "rho"):
        assert torch.equal(now[key][stays], stepped[key][kept]), "to the bit, also if it was removed and chosen again"
    assert torch.equal(now["g"][~stays], torch.zeros(int((~stays).sum())))
    torch.testing.assert_close(now["h"][~stays], now["h"][stays].mean().expand(int((~stays).sum())))
    torch.testing.assert_close(layer.sigma, optimizer.sigma(layer.posterior))


def test_where_no_weight_stays_h_is_the_mean_of_all_before():
    bnn = ssvi.to_bnn(nn.Linear(8, 1, bias=False), 0.25, prior_sigma=0.5)
    optimizer = ssvi.IVON(bnn, train_size=100)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=1.0)
    gradient = torch.ones(1, 8)
    gradient[0, bnn.index.long()] = 0.0  # nobody wants the live ones back
    with optimizer.sampled():
        bnn(gradient).sum().backward()
    optimizer.step()
    optimizer.state[bnn.mu]["h"].copy_(torch.tensor([1.0, 3.0]))
    assert subspace.step().count == 2
    assert optimizer.state[bnn.mu]["h"].tolist() == [2.0, 2.0]
    torch.testing.assert_close(bnn.sigma, optimizer.sigma(bnn.posterior))


@pytest.mark.parametrize("fresh_sigma", [0.02, "mean_rho"])
def test_a_sigma_for_fresh_weights_is_refused(fresh_sigma):
    bnn, x, _ = small_mlp()
    optimizer = ssvi.IVON(bnn, train_size=len(x))
    with pytest.raises(ValueError, match=rf"fresh_sigma={fresh_sigma!r} must be 'mean' with IVON"):
        ssvi.Subspace(bnn, optimizer, every=5, rate=0.3, fresh_sigma=fresh_sigma)


def test_resume_is_bit_for_bit():
    def run(interrupt: bool):
        bnn, x, y = small_mlp()
        optimizer = ssvi.IVON(bnn, train_size=len(x))
        subspace = ssvi.Subspace(bnn, optimizer, every=4, rate=0.3)
        steps(bnn, optimizer, subspace, x, y, 10, seed=1)
        if interrupt:
            saved = copy.deepcopy([part.state_dict() for part in (bnn, optimizer, subspace)])
            bnn, x, y = small_mlp()
            optimizer = ssvi.IVON(bnn, train_size=len(x))
            subspace = ssvi.Subspace(bnn, optimizer, every=4, rate=0.3)
            for part, state in zip((bnn, optimizer, subspace), saved, strict=True):
                part.load_state_dict(state)
        steps(bnn, optimizer, subspace, x, y, 10, seed=2)
        return bnn.state_dict()

    whole, resumed = run(False), run(True)
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)
