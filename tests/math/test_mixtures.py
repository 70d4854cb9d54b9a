"""The CRPS of mixtures against its integral, and in pieces."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from ssvi.likelihoods.families import Normal, StandardT
from ssvi.math import mixtures

FAMILIES = {"normal": (Normal(), stats.norm), "t": (StandardT(3.5), stats.t(3.5))}


def mixture(parts, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    location, log_scale = torch.randn(2, parts, n, dtype=torch.float64, generator=generator)
    return 2 * location, log_scale.exp(), 3 * torch.randn(n, dtype=torch.float64, generator=generator)


def crps(family, location, scale, y):
    return mixtures.crps(location, scale, y, family.mean_abs, family.mean_abs_difference)


def integrated(standard, location, scale, y):
    """The integral of (F(z) - 1[z >= y])^2, with more cuts where a part is narrow."""

    def squared(z):
        return (standard.cdf((z - location) / scale).mean() - (z >= y)) ** 2

    cuts = sorted({float(y), *location, *(location - 4 * scale), *(location + 4 * scale)})
    inner = sum(integrate.quad(squared, a, b, epsabs=1e-11)[0] for a, b in pairwise(cuts))
    outer = [integrate.quad(squared, *ends, epsabs=1e-11)[0] for ends in ((-np.inf, cuts[0]), (cuts[-1], np.inf))]
    return inner + sum(outer)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_crps_is_its_integral(name, parts):
    family, standard = FAMILIES[name]
    location, scale, y = mixture(parts, 4)
    expected = [integrated(standard, *(v.numpy() for v in row)) for row in zip(location.T, scale.T, y, strict=True)]
    assert crps(family, location, scale, y).numpy() == pytest.approx(expected, abs=1e-6)


def test_scoringrules_and_properscoring_give_the_same_for_gaussians():
    scoringrules, properscoring = pytest.importorskip("scoringrules"), pytest.importorskip("properscoring")
    location, scale, y = mixture(6, 50)
    score = crps(Normal(), location, scale, y).numpy()
    assert score == pytest.approx(scoringrules.crps_mixnorm(y.numpy(), location.numpy().T, scale.numpy().T), rel=1e-9)
    one = crps(Normal(), location[:1], scale[:1], y).numpy()
    assert one == pytest.approx(properscoring.crps_gaussian(y.numpy(), location[0].numpy(), scale[0].numpy()), rel=1e-9)


def test_scoringrules_gives_the_same_for_one_t():
    scoringrules = pytest.importorskip("scoringrules")
    location, scale, y = mixture(1, 50)
    expected = scoringrules.crps_t(y.numpy(), 3.5, location[0].numpy(), scale[0].numpy())
    assert crps(StandardT(3.5), location, scale, y).numpy() == pytest.approx(expected, abs=1e-6)


def test_pieces_change_nothing_and_bound_the_memory(monkeypatch):
    location, scale, y = mixture(4, 30)
    whole, sizes = crps(Normal(), location, scale, y), []
    monkeypatch.setattr(mixtures, "CHUNK", 28)  # 7 examples of 4 parts

    def watched(*parts):
        sizes.append(parts[0].numel())
        return Normal().mean_abs_difference(*parts)

    assert torch.equal(mixtures.crps(location, scale, y, Normal().mean_abs, watched), whole)
    assert max(sizes) == 28


def test_equal_parts_are_one_part():
    location, scale, y = mixture(1, 20)
    single = crps(Normal(), location, scale, y)
    assert torch.allclose(crps(Normal(), location.expand(7, -1), scale.expand(7, -1), y), single)
