"""Student's t against scipy: density, distribution function, and mean distances by adaptive integration."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from ssvi.math import student_t

DEGREES = [2.01, 3.0, 4.0, 30.0, 1e6]


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("df", DEGREES)
def test_density_distribution_and_quantile_are_scipys(df):
    z = torch.linspace(-30, 30, 41, dtype=torch.float64)
    assert student_t.log_density(df, z).numpy() == pytest.approx(stats.t(df).logpdf(z.numpy()), rel=1e-7)
    assert student_t.cdf(df, z).numpy() == pytest.approx(stats.t(df).cdf(z.numpy()))
    assert student_t.quantile(df, 0.03) == pytest.approx(stats.t(df).ppf(0.03))


@pytest.mark.parametrize("df", DEGREES)
@pytest.mark.parametrize(("location", "scale"), [(0.0, 1.0), (-2.0, 0.5), (30.0, 3.0)])
def test_mean_abs_is_its_integral(df, location, scale):
    """The probability of |location + scale T| > a, integrated over a."""
    t = stats.t(df, location, scale)
    tail = integrate.quad(lambda a: t.sf(a) + t.cdf(-a), 0, np.inf, limit=1000)[0]
    value = student_t.mean_abs(df, tensor(location), tensor(scale)).item()
    assert value == pytest.approx(tail, rel=2e-6 if df > 2.5 else 2e-2)


def difference_by_sums(df, d, a, b, cells=4000):
    """E|d + a T - b T'| as the mean over quantiles of T of the closed E|c - b T'|: slow, and obviously right."""
    edges = np.concatenate([[0], np.geomspace(1e-9, 0.5, cells)])
    middle = (edges[1:] + edges[:-1]) / 2
    p, weight = np.concatenate([middle, 1 - middle]), np.tile(np.diff(edges), 2)
    points = tensor(*(d + a * stats.t(df).ppf(p)))
    return float((torch.from_numpy(weight) * student_t.mean_abs(df, points, torch.full_like(points, b))).sum())


@pytest.mark.parametrize("df", [3.0, 4.0, 30.0])
@pytest.mark.parametrize(("d", "a", "b"), [(0.0, 1.0, 1.0), (2.0, 1.0, 0.01), (-5.0, 0.3, 2.0), (50.0, 1.0, 1.0)])
def test_mean_abs_difference_is_the_mean_over_one_of_the_two(df, d, a, b):
    value = student_t.mean_abs_difference(df, tensor(d), tensor(a), tensor(b)).item()
    assert value == pytest.approx(difference_by_sums(df, d, a, b), abs=2e-4, rel=1e-5)
    assert value == student_t.mean_abs_difference(df, tensor(-d), tensor(b), tensor(a)).item()


@pytest.mark.parametrize("df", [2.01, 2.5, 4.0, 10.0, 200.0])
def test_mean_abs_difference_has_seven_digits(df, monkeypatch):
    """Four times as many nodes and a smaller tail change less than 1e-6."""
    grid = torch.cartesian_prod(tensor(0.0, 0.3, 1.0, 5.0, 50.0), tensor(1e-4, 0.01, 0.3, 1.0))
    d, a, b = grid[:, 0], grid[:, 1], torch.ones(len(grid), dtype=torch.float64)
    value = student_t.mean_abs_difference(df, d, a, b)
    monkeypatch.setattr(student_t, "NODES", 80)
    monkeypatch.setattr(student_t, "TAIL", 1e-11)
    assert (value - student_t.mean_abs_difference(df, d, a, b)).abs().max() < 1e-6


def test_with_many_degrees_of_freedom_the_difference_is_that_of_gaussians():
    value = student_t.mean_abs_difference(1e7, tensor(0.7), tensor(0.5), tensor(1.2)).item()
    folded = stats.foldnorm(0.7 / 1.3, scale=1.3)
    assert value == pytest.approx(folded.mean(), rel=1e-6)
