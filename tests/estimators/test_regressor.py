"""Numbers: closed forms of Bayesian linear regression, units, noise, several targets."""

import itertools

import numpy as np
import pytest
import torch

import ssvi
from ssvi.estimators import EstimatorError, pace


def design(columns=4, repeats=4):
    """All corners of a cube, several times: columns of mean 0 and variance 1 that are orthogonal."""
    return np.array(list(itertools.product([-1.0, 1.0], repeat=columns)) * repeats)


def noisy_line(seed=0, n=96, columns=3):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, columns))
    return X, X @ np.arange(1.0, columns + 1) + 0.3 * generator.normal(size=n)


def short(**arguments):
    return ssvi.SSVIRegressor(**({"epochs": 4, "random_state": 0} | arguments))


def test_a_linear_model_has_the_posterior_of_bayesian_linear_regression(monkeypatch):
    """With orthogonal columns the posterior is N(m, v) in each weight, v = 1 / (n / noise^2 + 1 / prior_sigma^2).

    The memory is short, so that nothing is left of the start of sigma: exp(-1 / MEMORY) of it would be.
    """
    monkeypatch.setattr(pace, "MEMORY", 0.1)
    X, noise, prior_sigma = design(), 2.0, 0.5
    y = X @ [1.0, -0.5, 0.0, 0.25] + noise * np.random.default_rng(0).normal(size=len(X))
    y -= y.mean()
    estimator = ssvi.SSVIRegressor(
        hidden=(), density=1.0, noise=noise, prior_sigma=prior_sigma, standardise=False, epochs=1000, batch_size=32,
        samples=400, random_state=0,
    ).fit(X, y)  # fmt: skip
    variance = 1 / (len(X) / noise**2 + 1 / prior_sigma**2)
    mean = variance * X.T @ y / noise**2
    ((_, layer),) = ssvi.layers(estimator.bnn_)
    assert np.allclose(layer.mu.detach(), mean, atol=0.05)
    assert np.allclose(layer.sigma.detach() ** 2, variance, rtol=0.1)
    prediction = estimator.predict_distribution(X[:16])
    assert np.allclose(prediction.model_variance, 4 * variance, rtol=0.25), "sum_j x_j^2 v, and every x_j^2 is 1"
    assert np.allclose(prediction.noise_variance, noise**2)


@pytest.mark.parametrize("noise", ["learnt", "predicted", 0.4])
def test_units_of_y_change_the_prediction_by_the_same_factor_and_shift(noise):
    X, y = noisy_line()
    factor, shift = 1000.0, 5e4
    plain = short(noise=noise).fit(X, y)
    scaled = short(noise=factor * noise if isinstance(noise, float) else noise).fit(X, factor * y + shift)
    mean, std = plain.predict(X, return_std=True)
    mean_scaled, std_scaled = scaled.predict(X, return_std=True)
    assert np.allclose(mean_scaled, factor * mean + shift, rtol=1e-4)
    assert np.allclose(std_scaled, factor * std, rtol=1e-3)
    difference = plain.log_likelihood(X, y) - scaled.log_likelihood(X, factor * y + shift)
    assert difference == pytest.approx(np.log(factor), abs=1e-3)


def test_units_of_x_change_nothing():
    X, y = noisy_line()
    units = np.array([1.0, 1e3, 1e-3])
    assert np.allclose(short().fit(X, y).predict(X), short().fit(X * units - 7, y).predict(X * units - 7), rtol=1e-3)


def test_without_standardisation_the_network_sees_the_numbers_themselves():
    X, y = noisy_line()
    estimator = short(standardise=False).fit(X, y)
    drawn = ssvi.predict(estimator.bnn_, X, samples=300, likelihood=estimator.likelihood_)
    assert np.allclose(drawn.mean, estimator.predict(X), atol=5 * drawn.model_variance.max() ** 0.5)
    assert estimator.y_scaler_ is estimator.x_scaler_ is None


def test_a_noise_that_is_known_is_in_the_units_of_y():
    X, y = noisy_line()
    prediction = short(noise=0.7).fit(X, 10 * y).predict_distribution(X)
    assert np.allclose(prediction.noise_variance, 0.49)


def test_a_predicted_noise_finds_where_the_noise_is():
    generator = np.random.default_rng(0)
    X = np.r_[-np.ones(100), np.ones(100)][:, None]
    y = np.r_[0.1 * generator.normal(size=100), generator.normal(size=100)]
    estimator = ssvi.SSVIRegressor(noise="predicted", hidden=(), density=1, epochs=150, random_state=0).fit(X, y)
    quiet, loud = estimator.predict_distribution([[-1.0], [1.0]]).noise_variance.sqrt().tolist()
    assert quiet == pytest.approx(y[:100].std(), rel=0.3)
    assert loud == pytest.approx(y[100:].std(), rel=0.3)


def test_student_t_is_not_pulled_by_outliers():
    X, y = noisy_line(n=128)
    spoiled = y.copy()
    spoiled[::16] += 60
    arguments = {"hidden": (), "density": 1, "epochs": 100, "random_state": 0}
    gaussian = ssvi.SSVIRegressor(**arguments).fit(X, spoiled)
    robust = ssvi.SSVIRegressor(likelihood=ssvi.likelihoods.StudentT(df=2.5), **arguments).fit(X, spoiled)
    clean = np.arange(len(y)) % 16 != 0
    errors = [np.abs(estimator.predict(X)[clean] - y[clean]).mean() for estimator in (robust, gaussian)]
    assert errors[0] < 0.5 * errors[1]


def test_intervals_are_quantiles_and_grow_with_the_level():
    X, y = noisy_line()
    estimator = short().fit(X, y)
    low, high = estimator.predict_interval(X, level=0.9)
    wide_low, wide_high = estimator.predict_interval(X, level=0.99)
    assert (wide_low < low).all()
    assert (high < wide_high).all()
    cdf = estimator.predict_distribution(X).cdf(torch.as_tensor(high))
    assert np.allclose(cdf, 0.95)


@pytest.mark.parametrize("noise", ["learnt", "predicted"])
def test_several_targets_have_units_of_their_own(noise):
    X, y = noisy_line()
    both = np.c_[y, 1000 * y[::-1] + 5]
    estimator = short(noise=noise, epochs=60).fit(X, both)
    mean, std = estimator.predict(X, return_std=True)
    assert mean.shape == std.shape == both.shape
    assert estimator.score(X, np.c_[y, mean[:, 1]]) > 0.9, "the first target is learnt"
    assert std[:, 1].mean() > 100 * std[:, 0].mean()
    densities = estimator.predict_distribution(X).log_prob(torch.as_tensor(both))
    assert estimator.log_likelihood(X, both) == pytest.approx(float(densities.mean()))


def test_a_column_of_y_comes_back_as_a_column():
    X, y = noisy_line()
    column = short().fit(X, y[:, None])
    assert column.predict(X).shape == (96, 1)
    assert np.array_equal(column.predict(X)[:, 0], short().fit(X, y).predict(X))
    with pytest.raises(EstimatorError, match="y has shape"):
        column.log_likelihood(X, np.c_[y, y])


def test_weights_of_the_log_likelihood():
    X, y = noisy_line()
    estimator = short().fit(X, y)
    weight = np.r_[np.zeros(95), 2.0]
    assert estimator.log_likelihood(X, y, weight) == pytest.approx(estimator.log_likelihood(X[-1:], y[-1:]))


def test_a_known_noise_for_targets_of_different_units_is_refused():
    X, y = noisy_line()
    with pytest.raises(EstimatorError, match=r"noise=0\.5 for 2 targets"):
        short(noise=0.5).fit(X, np.c_[y, y])
    with pytest.raises(EstimatorError, match="not one of numbers"):
        short(likelihood=ssvi.likelihoods.Categorical(3)).fit(X, y)
    with pytest.raises(ValueError, match="noise='learned' must be"):
        short(noise="learned").fit(X, y)
