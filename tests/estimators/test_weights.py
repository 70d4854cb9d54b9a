"""The weights of examples: the bound of weighted rows is that of repeated rows."""

import numpy as np
import pytest
import torch

import ssvi
from ssvi.estimators import EstimatorError
from ssvi.estimators.examples import Batches, Examples, counted_rows


def examples(n=7, weight=None):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return Examples(x, x.sum(1).sin(), weight)


def repeated(given):
    times = given.weight.long()
    return Examples(given.x.repeat_interleave(times, 0), given.y.repeat_interleave(times, 0))


def data_term(given, batches):
    """train_size times the mean of the loss over batches of equal size: the sum over all examples, with its gradient."""
    net = torch.nn.Linear(3, 1).double()
    torch.nn.init.constant_(net.weight, 0.3)
    torch.nn.init.constant_(net.bias, 0.1)
    likelihood = ssvi.likelihoods.Gaussian(noise=0.5)
    losses = [likelihood.nll(net(batch.x), batch.y, batch.weight) for batch in batches]
    total = given.size * sum(losses) / len(losses)
    return total, torch.autograd.grad(total, net.weight)[0]


@pytest.mark.parametrize("batch_size", [8, 2])
def test_weighted_rows_have_the_bound_of_repeated_rows(batch_size):
    given = examples(8, torch.tensor([1.0, 2, 3, 1, 5, 1, 2, 1], dtype=torch.float64))
    weighted, gradient = data_term(given, list(Batches(given, batch_size, 1)))
    twice = repeated(given)
    expected, expected_gradient = data_term(twice, [twice])
    assert given.size == len(twice) == 16
    assert torch.allclose(weighted, expected, rtol=1e-12)
    assert torch.allclose(gradient, expected_gradient, rtol=1e-12)


@pytest.mark.parametrize(("n", "batch_size", "sizes"), [(33, 32, {33}), (65, 32, {32, 33}), (5, 32, {5}), (1, 4, {1})])
def test_batches_are_equal_parts_and_none_is_a_rest(n, batch_size, sizes):
    batches = list(Batches(examples(n), batch_size, epochs=2))
    assert {len(batch) for batch in batches} == sizes
    assert len(batches) == len(Batches(examples(n), batch_size, epochs=2))
    epoch = torch.cat([batch.y for batch in batches[: len(batches) // 2]])
    assert torch.equal(epoch.sort().values, examples(n).y.sort().values), "an epoch has every example once"


def test_rows_of_weight_0_do_not_count_at_all():
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    X_counted, y_counted, weight = counted_rows(X, y, [2, 0, 1])
    assert X_counted.tolist() == [[0, 1], [4, 5]]
    assert y_counted.tolist() == [0, 2]
    assert weight.tolist() == [2, 1]


def test_equal_weights_count_in_the_number_of_examples_and_else_change_nothing():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.linspace(-1, 1, 40)
    plain = ssvi.SSVIRegressor(epochs=3, random_state=0).fit(X, y)
    once = ssvi.SSVIRegressor(epochs=3, random_state=0).fit(X, y, sample_weight=np.ones(40))
    thrice = ssvi.SSVIRegressor(epochs=3, random_state=0).fit(X, y, sample_weight=np.full(40, 3))
    assert np.allclose(plain.predict(X), once.predict(X), rtol=1e-5)
    assert (once.n_examples_, thrice.n_examples_) == (40, 120)


def test_a_heavy_example_pulls_the_prediction():
    X = np.zeros((20, 1))
    y = np.r_[np.zeros(19), 10.0]
    weight = np.r_[np.ones(19), 57.0]
    fitted = ssvi.SSVIRegressor(hidden=(), density=1, epochs=300, random_state=0).fit(X, y, sample_weight=weight)
    assert fitted.predict(X)[0] == pytest.approx(np.average(y, weights=weight), abs=0.5)


def test_a_weight_below_0_means_nothing():
    with pytest.raises(EstimatorError, match=r"sample_weight has -1\.0.*0 or more"):
        counted_rows(np.ones((3, 1)), np.ones(3), [-1, 1, 1])
