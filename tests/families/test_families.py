"""The families of posteriors: KL, draws and moments against quadrature, scipy's distributions and limits."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.integrate import quad

from ssvi import families
from ssvi.families import Gaussian, Laplace, StudentT
from ssvi.families.base import Family
from ssvi.math import gaussian
from ssvi.nn.posterior import SparseFamily, SparseGaussian

FAMILIES = [Gaussian(), Laplace(), StudentT(2.5), StudentT(5), StudentT(40)]
each = pytest.mark.parametrize("family", FAMILIES, ids=str)
WEIGHTS = [(0.0, 1.0, 1.0), (0.7, 0.05, 1.0), (-2.0, 3.0, 0.5), (1e-3, 0.2, 10.0)]
"""mu, sigma, prior_sigma."""


def scipys(family: Family, mu: float = 0.0, sigma: float = 1.0):
    """The distribution of a weight as scipy has it, which knows scales and not standard deviations."""
    match family:
        case Gaussian():
            return scipy.stats.norm(mu, sigma)
        case Laplace():
            return scipy.stats.laplace(mu, sigma / math.sqrt(2))
        case StudentT(nu):
            return scipy.stats.t(nu, mu, sigma * math.sqrt((nu - 2) / nu))


def expectation(family: Family, mu: float, sigma: float, function) -> float:
    """E function(theta), from three integrals: in the middle, and in the logarithm of the distance for the tails."""
    q = scipys(family, mu, sigma)
    middle = quad(lambda x: q.pdf(x) * function(x), mu - sigma, mu + sigma, points=[mu, 0.0], epsabs=1e-12)[0]
    right = quad(lambda u: _tail(q, function, mu, sigma, u, 1), 0, 60, epsabs=1e-12, limit=400)[0]
    left = quad(lambda u: _tail(q, function, mu, sigma, u, -1), 0, 60, epsabs=1e-12, limit=400)[0]
    return middle + left + right


def _tail(q, function, mu: float, sigma: float, u: float, side: int) -> float:
    x = mu + side * sigma * math.exp(u)
    density = q.pdf(x)
    return density * function(x) * sigma * math.exp(u) if density else 0.0


def kl_by_quadrature(family: Family, mu: float, sigma: float, prior: float) -> float:
    q, p = scipys(family, mu, sigma), scipys(Gaussian(), 0.0, prior)
    return expectation(family, mu, sigma, lambda x: q.logpdf(x) - p.logpdf(x))


def posterior(family: Family, mu: float, sigma: float, prior: float):
    """One live weight."""
    place = (1, 1), torch.tensor([0]), torch.tensor([mu], dtype=torch.float64)
    spread = {"prior_sigma": prior, "sigma_init": sigma, "sigma_map": "exp"}
    return SparseGaussian(*place, **spread) if family == Gaussian() else SparseFamily(*place, family=family, **spread)


@each
@pytest.mark.parametrize(("mu", "sigma", "prior"), WEIGHTS)
def test_kl_is_that_of_quadrature(family, mu, sigma, prior):
    want = kl_by_quadrature(family, mu, sigma, prior)
    assert posterior(family, mu, sigma, prior).kl().item() == pytest.approx(want, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("family", [Laplace(), StudentT(5)], ids=str)
@pytest.mark.parametrize(("mu", "sigma", "prior"), WEIGHTS[1:3])
def test_gradients_of_kl_are_differences_of_quadrature(family, mu, sigma, prior):
    """rho is log(sigma / sigma_init) / GAIN, so d/d rho = GAIN sigma d/d sigma."""
    q, step = posterior(family, mu, sigma, prior), 1e-3
    q.kl().backward()

    def slope(of_mu: float, of_sigma: float) -> float:
        ends = [kl_by_quadrature(family, mu + t * of_mu, sigma + t * of_sigma, prior) for t in (-1, 1)]
        return (ends[1] - ends[0]) / (2 * (of_mu or of_sigma))

    assert q.mu.grad.item() == pytest.approx(slope(step * sigma, 0.0), rel=1e-4)
    assert q.rho.grad.item() == pytest.approx(10.0 * sigma * slope(0.0, step * sigma), rel=1e-4)


def test_with_many_degrees_of_freedom_the_kl_is_that_of_the_gaussian():
    mu, sigma = torch.tensor(0.3, dtype=torch.float64), torch.tensor(0.2, dtype=torch.float64)
    want = gaussian.kl(mu, sigma, 1.0).item()
    gaps = [posterior(StudentT(nu), 0.3, 0.2, 1.0).kl().item() - want for nu in (5, 50, 500)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] * 500**2 == pytest.approx(0.75, rel=0.05), "J falls as 3 / (4 nu^2)"
    assert posterior(StudentT(1e6), 0.3, 0.2, 1.0).kl().item() == pytest.approx(want, abs=1e-9)


@each
def test_the_least_kl_is_at_the_spread_of_the_prior(family):
    """What the warning of a collapse relies on: sigma is a standard deviation, so all families end at prior_sigma."""
    at = {sigma: posterior(family, 0.0, sigma, 2.0).kl().item() for sigma in (1.9, 2.0, 2.1)}
    assert min(at, key=at.get) == 2.0
    assert at[2.0] == pytest.approx(family.negentropy, abs=1e-12)


def draws(family: Family, count: int = 100_000, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return family.noise(count, dtype=dtype, device=torch.device("cpu"), generator=generator)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_have_scipys_distribution(family, dtype):
    assert scipy.stats.kstest(draws(family, dtype=dtype).double().numpy(), scipys(family).cdf).pvalue > 0.01


@pytest.mark.parametrize("other", [Gaussian(), StudentT(5)])
def test_the_test_of_the_distribution_can_fail(other):
    assert scipy.stats.kstest(draws(Laplace()).numpy(), scipys(other).cdf).pvalue < 1e-6


@pytest.mark.parametrize("family", [Gaussian(), Laplace(), StudentT(9), StudentT(40)], ids=str)
def test_draws_have_mean_0_variance_1_and_the_kurtosis_of_the_family(family):
    z = draws(family, 400_000)
    assert z.mean().item() == pytest.approx(0.0, abs=5 / math.sqrt(len(z)))
    kurtosis = 3.0 + float(scipys(family).stats(moments="k"))
    assert z.var().item() == pytest.approx(1.0, abs=5 * math.sqrt((kurtosis - 1) / len(z)))
    assert z.pow(4).mean().item() == pytest.approx(kurtosis, rel=0.15)


@each
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_ends_of_the_uniform_numbers_give_finite_draws(family, dtype, monkeypatch):
    ends = torch.tensor([0.0, 1 - 2**-24])
    grid = torch.cartesian_prod(ends, ends).T
    monkeypatch.setattr(torch, "rand", lambda *shape, **_: grid)
    assert family.noise(4, dtype=dtype, device=torch.device("cpu")).isfinite().all()


@each
@pytest.mark.parametrize("r", [0.0, 0.3, 2.0, 9.0])
def test_moments_of_the_absolute_value_are_those_of_quadrature(family, r):
    mean = expectation(family, r, 1.0, abs)
    ratio = torch.tensor([r], dtype=torch.float64)
    assert family.excess(ratio).item() == pytest.approx(mean - r, rel=1e-6, abs=1e-9)
    assert family.mean_abs(-0.1 * ratio, torch.tensor([0.1])).item() == pytest.approx(0.1 * mean, rel=1e-6)
    assert family.snr_abs(ratio).item() == pytest.approx(mean / math.sqrt(1 + r**2 - mean**2), rel=1e-6)


@pytest.mark.parametrize("family", [*FAMILIES[1:], StudentT(2.01)], ids=str)
def test_snr_of_the_absolute_value_grows_with_r(family):
    """Proof in docs/posteriors.md: so criteria 2 and 4 have the same order in these families too."""
    r = torch.from_numpy(np.concatenate([np.geomspace(1e-2, 1e6, 400), [np.inf]]))
    snr = family.snr_abs(r)
    assert (snr[1:] > snr[:-1]).all()


@pytest.mark.parametrize(
    "family", [Gaussian(), Laplace(), Laplace(True), StudentT(), StudentT(2.7), StudentT(1e6, True)], ids=str
)
def test_a_family_comes_back_from_its_text(family):
    assert families.resolve(str(family)) == family
    assert families.resolve(family) is family


def test_a_class_or_a_name_has_the_defaults():
    assert families.resolve(StudentT) == families.resolve("student-t") == StudentT(5.0)
    assert families.resolve("student-t:moment-matched") == StudentT(5.0, moment_matched=True)
    assert families.resolve(Laplace) == families.resolve("laplace")


@pytest.mark.parametrize("unknown", ["cauchy", "gaussian:moment-matched", "laplace:3", "student-t:inf", 5, str])
def test_what_is_no_family_is_an_error_that_names_the_remedy(unknown):
    with pytest.raises(ValueError, match=r"is unknown: take 'gaussian', 'laplace'"):
        families.resolve(unknown)


@pytest.mark.parametrize("nu", [2, 2.0, -1.0, math.inf, math.nan, True, "5"])
def test_degrees_of_freedom_without_a_variance_are_an_error(nu):
    with pytest.raises(ValueError, match=r"StudentT\(nu=.*must be greater than 2"):
        StudentT(nu)
    assert not families.is_known("student-t:2")
