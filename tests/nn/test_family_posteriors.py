"""Laplace and Student-t posteriors in layers: one theta for each call, moment matching, and what works as with Gaussians."""

import math
import sys

import pytest
import torch
import torch.nn.functional as F
from scipy.integrate import quad
from torch import nn

import ssvi
from ssvi.errors import UserError
from ssvi.families import Laplace, StudentT
from ssvi.nn.posterior import SparseFamily

OTHERS = ["laplace", "student-t:9"]
each = pytest.mark.parametrize("family", OTHERS)


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).double()


@pytest.mark.parametrize("family", ["gaussian", *OTHERS, *(f"{name}:moment-matched" for name in OTHERS)])
def test_a_call_has_one_theta_unless_its_noise_is_local(family):
    bnn = ssvi.to_bnn(net(), 0.5, posterior=family)
    x = torch.randn(1, 6, dtype=torch.float64).expand(4, 6)
    y = bnn(x)
    assert torch.equal(y[:1].expand_as(y), y) == (family in OTHERS)
    assert not torch.equal(y, bnn(x))
    with ssvi.at_sample(bnn):
        assert torch.equal(bnn(x), bnn(x))


SIGMA, INPUTS = 0.5, torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def outputs(family: str, count: int = 200_000) -> torch.Tensor:
    """Independent draws of y = theta x: the outputs of one wide layer, each with weights of its own."""
    layer = nn.Linear(3, count, bias=False).double()
    bnn = ssvi.to_bnn(layer, 1.0, posterior=family, sigma_init=SIGMA, mu_init=0.0)
    torch.manual_seed(1)
    return bnn(INPUTS[None]).detach().squeeze()


def kurtosis(y: torch.Tensor) -> float:
    return (y.pow(4).mean() / y.square().mean() ** 2).item()


def test_moment_matching_has_the_mean_and_the_variance_and_no_higher_moment():
    """E y^4 / (E y^2)^2 = 3 + k sum x^4 / (sum x^2)^2, where the weights have the excess kurtosis k; Laplace has 3."""
    exact, matched = outputs("laplace"), outputs("laplace:moment-matched")
    variance = (SIGMA * INPUTS).square().sum().item()
    for y in (exact, matched):
        assert y.mean().item() == pytest.approx(0.0, abs=5 * math.sqrt(variance / len(y)))
        assert y.var().item() == pytest.approx(variance, rel=0.02)
    share = INPUTS.pow(4).sum() / INPUTS.square().sum() ** 2
    assert kurtosis(exact) == pytest.approx(3 + 3 * share.item(), rel=0.05)
    assert kurtosis(matched) == pytest.approx(3.0, rel=0.03)


def test_moment_matching_trains_the_mu_and_sigma_of_the_gaussian_to_the_bit():
    """Its noise and the gradient of its KL are the Gaussian's: only prediction knows the family."""
    x, y = torch.randn(32, 6, dtype=torch.float64), torch.randint(3, (32,))
    states = []
    for family in ("gaussian", "laplace:moment-matched", "student-t:3:moment-matched"):
        bnn = ssvi.to_bnn(net(), 0.5, posterior=family, seed=0)
        optimizer = torch.optim.Adam(bnn.parameters(), lr=0.01)
        subspace = ssvi.Subspace(bnn, optimizer, every=3, rate=0.3)
        elbo = ssvi.ELBO(bnn, train_size=32)
        torch.manual_seed(2)
        for _ in range(10):
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x), y)).backward()
            optimizer.step()
            subspace.step()
        states.append(bnn.state_dict())
        assert (ssvi.kl(bnn) > 0).item()
    for other in states[1:]:
        assert all(torch.equal(states[0][key], other[key]) for key in other)


@each
def test_the_gradient_is_that_of_plain_autograd_at_the_same_theta(family):
    """theta = mu + sigma z by hand, with the z of the same generator, in a plain network."""
    bnn = ssvi.to_bnn(net(), 0.5, posterior=family, seed=0)
    x, y = torch.randn(8, 6, dtype=torch.float64), torch.randint(3, (8,))
    torch.manual_seed(3)
    loss = F.cross_entropy(bnn(x), y) + ssvi.kl(bnn) / 8
    loss.backward()
    torch.manual_seed(3)
    h, kl = x, torch.zeros(())
    leaves = []
    for i in (0, 2):
        p = bnn[i].posterior
        mu, rho = (t.detach().clone().requires_grad_() for t in (p.mu, p.rho))
        leaves += [(p.mu, mu), (p.rho, rho)]
        sigma = p.sigma_init * torch.exp(10.0 * rho)
        z = p.family.noise(p.s, dtype=torch.float64, device=mu.device)
        weight = torch.zeros(p.d, dtype=torch.float64).index_put((p.index.long(),), mu + sigma * z).view(p.shape)
        h = F.linear(F.relu(h) if i else h, weight, bnn[i].bias)
        s = p.prior_sigma
        kl = kl + (0.5 * ((sigma**2 + mu**2) / s**2 - 1) - (sigma / s).log() + p.family.negentropy).sum()
    (F.cross_entropy(h, y) + kl / 8).backward()
    for own, reference in leaves:
        torch.testing.assert_close(own.grad, reference.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("family", "reference"), [("laplace", Laplace()), ("student-t:5", StudentT(5))])
def test_the_mean_gradient_is_that_of_quadrature_and_not_the_gaussians(family, reference):
    """d/d sigma of E softplus(k theta): its mean over draws against an integral over z."""
    torch.manual_seed(0)
    k, mu, sigma, count = 6.0, 0.1, 1.0, 400_000
    bnn = ssvi.to_bnn(nn.Linear(1, count, bias=False).double(), 1.0, posterior=family, sigma_init=sigma, mu_init=0.0)
    with torch.no_grad():
        bnn.mu.fill_(mu)
    F.softplus(k * bnn(torch.ones(1, 1, dtype=torch.float64))).sum().backward()
    slopes = bnn.posterior.rho.grad / (10.0 * sigma)
    error = (slopes.std() / math.sqrt(count)).item()
    assert slopes.mean().item() == pytest.approx(by_quadrature(density(reference), k, mu, sigma), abs=5 * error)
    gaussian = by_quadrature(lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi), k, mu, sigma)
    assert abs(slopes.mean().item() - gaussian) > 10 * error, "a family that trained as a Gaussian would be seen"


def density(family):
    import scipy.stats

    if isinstance(family, Laplace):
        return scipy.stats.laplace(0, math.sqrt(0.5)).pdf
    return scipy.stats.t(family.nu, 0, family.scale).pdf


def by_quadrature(p, k: float, mu: float, sigma: float) -> float:
    """E[z k sigmoid(k (mu + sigma z))]."""

    def slope(z: float) -> float:
        return p(z) * z * k / (1 + math.exp(-min(max(k * (mu + sigma * z), -500), 500)))

    return sum(quad(slope, *ends, limit=200)[0] for ends in ((-400, -5), (-5, 0), (0, 5), (5, 400)))


@each
def test_what_the_library_does_with_a_gaussian_it_does_with_other_families(family):
    bnn = ssvi.to_bnn(net(), 0.5, posterior=family, sigma_init=0.2).eval()
    x = torch.randn(5, 6, dtype=torch.float64)
    assert all(isinstance(layer.posterior, SparseFamily) for _, layer in ssvi.layers(bnn))
    assert str(ssvi.summary(bnn)).count(family) == 2
    assert repr(bnn).count(family) == 2
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(ssvi.mean(bnn)(x), bnn(x))
    with ssvi.at_sample(bnn, torch.Generator().manual_seed(4)):
        torch.testing.assert_close(ssvi.sample(bnn, torch.Generator().manual_seed(4))(x), bnn(x))
    samples = ssvi.predict_samples(bnn, x, samples=3)
    assert samples.var(0).min() > 0
    assert ssvi.predict(bnn, x, samples=3).sum(1).tolist() == pytest.approx([1.0] * 5)


@each
def test_convolutions_readers_tied_weights_and_structures_have_families_too(family):
    class Everything(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)
            self.lstm = nn.LSTM(8, 8, batch_first=True)
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.b.weight = self.a.weight

        def forward(self, x):
            h = F.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
            return self.b(self.a(self.lstm(h)[0][:, -1]))

    bnn = ssvi.to_bnn(Everything(), 0.25, posterior=family, structure="block:4", keep_dense=("conv",), seed=0)
    assert bnn.a.posterior is bnn.b.posterior
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.01)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.3)
    for _ in range(3):
        optimizer.zero_grad()
        bnn(torch.randn(4, 1, 6, 6)).square().mean().backward()
        optimizer.step()
        assert subspace.step().count > 0
    for posterior in ssvi.nn.posteriors(bnn).values():
        assert posterior.units.admits(posterior.index)


@each
def test_updates_keep_the_density_and_the_weights_that_stay_to_the_bit(family):
    bnn = ssvi.to_bnn(net(), 0.3, posterior=family, sigma_init=0.1, seed=0)
    optimizer = torch.optim.Adam(bnn.parameters(), lr=0.01)
    subspace = ssvi.Subspace(bnn, optimizer, every=1, rate=0.4)
    x, y = torch.randn(16, 6, dtype=torch.float64), torch.randint(3, (16,))
    counts = [layer.posterior.s for _, layer in ssvi.layers(bnn)]
    assert sum(counts) == round(0.3 * (6 * 16 + 16 * 3))
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        before = {
            name: (p.dense(p.mu).detach().clone(), p.sigma.detach()) for name, p in ssvi.nn.posteriors(bnn).items()
        }
        update = subspace.step()
        for name, p in ssvi.nn.posteriors(bnn).items():
            stays = ~torch.isin(p.index, update.moves[name].added)
            assert torch.equal(p.mu[stays], before[name][0].flatten()[p.index.long()[stays]])
            assert (p.mu[~stays] == 0).all()
    assert [layer.posterior.s for _, layer in ssvi.layers(bnn)] == counts


def test_a_point_has_no_family():
    with pytest.raises(ValueError, match=r"point=True and posterior='laplace': a point has no distribution"):
        ssvi.to_bnn(net(), 0.5, posterior="laplace", point=True)


@each
def test_natural_gradients_are_gaussian(family):
    bnn = ssvi.to_bnn(net(), 0.5, posterior=family)
    with pytest.raises(ValueError, match=rf"layer '0' is {family}: convert with to_bnn\(..., posterior='gaussian'\)"):
        ssvi.IVON(bnn, train_size=10)


@pytest.mark.parametrize("name", ["mean_exp_abs", "snr_exp_abs", "snr_abs_textbook"])
def test_criteria_that_are_gaussian_formulas_are_refused_by_name_and_as_functions(name):
    bnn = ssvi.to_bnn(net(), 0.5, posterior="laplace")
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    function = getattr(ssvi.criteria, name)
    for removal in (name, function if name == "snr_abs_textbook" else function(2.0)):
        with pytest.raises(ValueError, match="for Gaussian posteriors, and this one is laplace: take one of abs_mu"):
            ssvi.Subspace(bnn, optimizer, every=1, rate=0.1, removal=removal)


def test_without_scipy_the_criteria_of_student_t_are_an_error_before_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    bnn = ssvi.to_bnn(net(), 0.5, posterior="student-t")
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.1)
    with pytest.raises(UserError, match=r"needs scipy, which is not installed: pip install"):
        ssvi.Subspace(bnn, optimizer, every=1, rate=0.1)
    ssvi.Subspace(bnn, optimizer, every=1, rate=0.1, removal="snr")


def test_criteria_3_and_4_are_those_of_the_family():
    mu, sigma = torch.tensor([0.0, 0.5, -3.0]), torch.tensor([1.0, 0.5, 0.1])
    for removal in ("mean_abs", ssvi.criteria.mean_abs):
        score = ssvi.criteria.resolve(removal, Laplace())(mu, sigma)
        b = sigma.double() / math.sqrt(2)
        torch.testing.assert_close(score, mu.abs() + b * torch.exp(-mu.abs() / b))
        assert not torch.allclose(score, ssvi.criteria.mean_abs(mu, sigma))
    order = ssvi.criteria.resolve("snr_abs", StudentT(3))(mu, sigma).argsort()
    assert torch.equal(order, ssvi.criteria.snr(mu, sigma).argsort())
    assert ssvi.criteria.resolve("snr", Laplace()) is ssvi.criteria.snr
    own = ssvi.criteria.resolve(lambda mu, sigma: mu - sigma, Laplace())
    assert torch.equal(own(mu, sigma), mu - sigma)


@each
def test_a_step_with_one_theta_costs_half_of_local_reparameterisation(family):
    x = torch.zeros(1, 6, dtype=torch.float64)
    costs = [
        ssvi.flops.training(ssvi.to_bnn(net(), 0.5, posterior=name), x, steps=1, batch_size=1)
        for name in ("gaussian", f"{family}:moment-matched", family)
    ]
    assert costs[0] == costs[1] == 2 * costs[2]
