"""sigma stays finite and positive: bounds of rho, with every optimiser of torch, in graphs and in functional calls."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import ssvi

# ten times a recommended learning rate each
OPTIMIZERS = {
    "SGD": {"lr": 0.5, "momentum": 0.9},
    "Adam": {"lr": 0.1},
    "AdamW": {"lr": 0.1},
    "RMSprop": {"lr": 0.1},
    "Adagrad": {"lr": 0.1},
    "Adadelta": {"lr": 10.0},
    "NAdam": {"lr": 0.02},
    "RAdam": {"lr": 0.1},
    "Adamax": {"lr": 0.02},
    "ASGD": {"lr": 0.5},
    "Rprop": {"lr": 0.1},
    "Adafactor": {"lr": 0.1},
}


def posterior(sigma_map: str = "exp", prior_sigma: float = 0.1, sigma_init: float = 0.01) -> nn.Module:
    net = nn.Linear(4, 2, bias=False)
    return ssvi.to_bnn(net, 1.0, prior_sigma=prior_sigma, sigma_init=sigma_init, sigma_map=sigma_map).posterior


@pytest.mark.filterwarnings("ignore::ssvi.inference.watch.TrainingWarning")
@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_no_optimiser_takes_sigma_to_zero_or_infinity(name, sigma_map):
    torch.manual_seed(0)
    x, y = torch.randn(50, 8), torch.randint(3, (50,))
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    bnn = ssvi.to_bnn(net, 0.5, prior_sigma=1.0, sigma_map=sigma_map)
    optimizer = getattr(torch.optim, name)(bnn.parameters(), **OPTIMIZERS[name])
    elbo = ssvi.ELBO(bnn, train_size=50)
    for _ in range(100):
        optimizer.zero_grad()
        elbo(F.cross_entropy(bnn(x), y)).backward()
        optimizer.step()
        for _, layer in ssvi.layers(bnn):
            assert layer.sigma.isfinite().all()
            assert (layer.sigma > 0).all()


@pytest.mark.filterwarnings("ignore::ssvi.inference.watch.TrainingWarning")
@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_ivon_does_not_take_sigma_to_zero_or_infinity_either(sigma_map):
    """Ten times its learning rate, on a curvature that is forgotten in ten steps."""
    torch.manual_seed(0)
    x, y = torch.randn(50, 8), torch.randint(3, (50,))
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    bnn = ssvi.to_bnn(net, 0.5, prior_sigma=1.0, sigma_map=sigma_map)
    optimizer = ssvi.IVON(bnn, 3.0, train_size=50, warmup=0, betas=(0.9, 0.9))
    for _ in range(100):
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        for _, layer in ssvi.layers(bnn):
            for sigma in (layer.sigma, optimizer.sigma(layer.posterior)):
                assert sigma.isfinite().all()
                assert (sigma > 0).all()
                assert (sigma <= 10 * (1 + 1e-4)).all()
            assert layer.mu.isfinite().all()


@pytest.mark.parametrize("trained", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
@pytest.mark.parametrize(("prior_sigma", "sigma_init"), [(0.1, 0.01), (1e-3, 2.0), (1e4, 0.1)])
def test_the_bounds_are_those_of_prior_and_start(prior_sigma, sigma_init, sigma_map, trained):
    q = posterior(sigma_map, prior_sigma, sigma_init).double().train(trained)
    bounds = torch.tensor([10 * max(prior_sigma, sigma_init), 1e-8 * min(prior_sigma, sigma_init)]).double()
    rho = torch.tensor([torch.inf, -torch.inf, 1e9, -1e9, 0, 0, 0, 0], dtype=torch.float64)
    with torch.no_grad():
        q.rho.copy_(rho)
    torch.testing.assert_close(q.sigma[:4].detach(), bounds.repeat(2))
    assert torch.equal(q.rho, rho) is not trained  # a network that is only evaluated stays as it was saved


@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_within_the_range_nothing_changes_and_nan_is_not_hidden(sigma_map):
    q = posterior(sigma_map)
    with torch.no_grad():
        q.rho.copy_(q.rho_of(torch.logspace(-9, -0.1, 8)))
    before, version = q.rho.detach().clone(), q.rho._version
    assert torch.equal(q.sigma, q.sigma_of(before))
    assert torch.equal(q.rho, before)
    assert q.rho._version == version
    with torch.no_grad():
        q.rho[0] = torch.nan
    assert q.sigma[0].isnan()


@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_graphs_of_micro_batches_stay_valid(sigma_map):
    """rho is far out of its range before the first of two forward passes; both go backward, and it gets a gradient."""
    q = posterior(sigma_map)
    with torch.no_grad():
        q.rho.fill_(50.0)
    first, second = q.kl(), q.kl()
    (first + second).backward()
    assert (q.rho.grad > 0).all()  # downhill is back to the prior


def test_a_functional_call_changes_no_tensor_of_its_caller():
    q = posterior().double()
    far = {"rho": torch.full((8,), 50.0, dtype=torch.float64)}
    torch.testing.assert_close(_sigma(q, far), torch.ones(8, dtype=torch.float64))
    assert (far["rho"] == 50.0).all()
    inside = torch.full((8,), 0.1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rho: _sigma(q, {"rho": rho}), (inside,))


CHANGES = {
    "prior": lambda q: setattr(q, "prior_sigma", 3.0),
    "map": lambda q: setattr(q, "sigma_map", "softplus"),
    "in place": lambda q: q.sigma_init.fill_(2.0),
    "state": lambda q: q.load_state_dict(q.state_dict() | {"sigma_init": torch.tensor(2.0)}),
    "dtype": lambda q: q.half(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_range_is_kept_until_something_changes(change):
    q = posterior()
    with torch.inference_mode():
        q.sigma.sum()
    before = q.rho_range
    assert all(a is b for a, b in zip(before, q.rho_range, strict=True))
    assert not any(end.is_inference() for end in before)
    twin = copy.deepcopy(q)
    CHANGES[change](q)
    for end, old, new in zip(q.rho_range, before, q._find_rho_range(), strict=True):
        assert end is not old
        torch.testing.assert_close(end, new, rtol=0, atol=0)
    twin.sigma_init = twin.sigma_init + 1.0
    torch.testing.assert_close(twin.rho_range, twin._find_rho_range(), rtol=0, atol=0)


def test_a_traced_range_is_not_kept():
    q = posterior()
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(q.rho_range[0], FakeTensor)
    assert not isinstance(q.rho_range[0], FakeTensor)


def _sigma(q: nn.Module, parameters: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.nn.utils.stateless._reparametrize_module(q, parameters):
        return q.sigma
