"""Closed forms of the Gaussian against quadrature."""

import mpmath as mp
import pytest
import torch

from ssvi.math import gaussian


@pytest.mark.parametrize(("mu", "sigma"), [(0.3, 0.1), (0.0, 1.0), (-2.0, 0.5), (1e-3, 0.2)])
def test_closed_forms_against_quadrature(mu, sigma):
    def expect(f):
        cuts = [mp.mpf(mu) + mp.mpf(sigma) * z for z in (-12, -4, 4, 12)]
        cuts = sorted({*cuts, mp.mpf(0)}) if cuts[0] < 0 < cuts[-1] else cuts
        return mp.quad(lambda x: f(x) * mp.npdf(x, mu, sigma), cuts)

    m, s = torch.tensor([mu], dtype=torch.float64), torch.tensor([sigma], dtype=torch.float64)
    with mp.workdps(30):
        mean = expect(abs)
        second = expect(lambda x: x * x)
        exp1, exp2 = expect(lambda x: mp.exp(abs(x))), expect(lambda x: mp.exp(2 * abs(x)))
        kl = expect(lambda x: mp.log(mp.npdf(x, mu, sigma) / mp.npdf(x, 0, mp.mpf("0.7"))))
        assert gaussian.mean_abs(m, s).item() == pytest.approx(float(mean), rel=1e-12)
        snr_abs = gaussian.snr_abs(gaussian.ratio(m, s)).item()
        assert snr_abs == pytest.approx(float(mean / mp.sqrt(second - mean**2)), rel=1e-12)
        assert gaussian.log_mean_exp_abs(m, s, 1.0).item() == pytest.approx(float(mp.log(exp1)), rel=1e-12)
        log_snr = float(mp.log(exp1 / mp.sqrt(exp2 - exp1**2)))
        assert gaussian.log_snr_exp_abs(m, s, 1.0).item() == pytest.approx(log_snr, rel=1e-10)
        assert gaussian.kl(m, s, 0.7).item() == pytest.approx(float(kl), rel=1e-10)


def test_kl_is_zero_at_the_prior_and_positive_elsewhere():
    mu = torch.tensor([0.0, 0.1, 0.0, -3.0], dtype=torch.float64)
    sigma = torch.tensor([0.2, 0.2, 0.1, 5.0], dtype=torch.float64)
    divergence = gaussian.kl(mu, sigma, 0.2)
    assert divergence[0] == pytest.approx(0.0, abs=1e-15)
    assert (divergence[1:] > 0).all()
