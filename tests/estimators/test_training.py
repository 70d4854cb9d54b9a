"""Training: random numbers, own networks, density, partial_fit, and how long it takes by default."""

import numpy as np
import polars
import pytest
import torch
from torch import nn

import ssvi
from ssvi.estimators import EstimatorError
from ssvi.estimators.pace import to_the_end, without_end


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(80, 5))
    return X, X[:, 0] - 2 * X[:, 1] + 0.1 * generator.normal(size=80)


def short(**arguments):
    return ssvi.SSVIRegressor(**({"epochs": 4, "random_state": 0} | arguments))


def test_random_numbers_come_from_random_state_alone(data):
    torch.manual_seed(1)
    first = short().fit(*data).predict(data[0])
    torch.manual_seed(2)
    state = torch.get_rng_state()
    estimator = short().fit(*data)
    assert np.array_equal(estimator.predict(data[0]), first)
    assert np.array_equal(estimator.fit(*data).predict(data[0]), first), "a second fit begins anew"
    assert torch.equal(torch.get_rng_state(), state), "torch's own generator is untouched"
    assert not np.allclose(short(random_state=1).fit(*data).predict(data[0]), first)


@pytest.mark.parametrize("density", [0.2, 0.5, 1.0])
def test_density_is_the_share_of_live_weights(data, density):
    layers = [layer.posterior for _, layer in ssvi.layers(short(density=density).fit(*data).bnn_)]
    assert sum(p.s for p in layers) == round(density * sum(p.d for p in layers)) == round(density * (5 * 50 + 50))


def test_supports_move(data):
    start = ssvi.SSVIRegressor(epochs=4, every=1000, random_state=0).fit(*data)
    moved = ssvi.SSVIRegressor(epochs=4, every=2, random_state=0).fit(*data)
    indices = [next(layer for _, layer in ssvi.layers(estimator.bnn_)).index for estimator in (start, moved)]
    assert not torch.equal(*indices)


def test_an_own_network_is_copied(data):
    net = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).double()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    estimator = short(module=net).fit(*data)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert type(net[0]) is nn.Linear
    assert next(estimator.bnn_.parameters()).dtype == torch.float64
    assert np.allclose(estimator.predict(data[0])[:7], estimator.predict(data[0][:7]), rtol=1e-12)


def test_a_function_makes_a_network_for_the_data(data):
    asked = []

    def make(inputs, outputs):
        asked.append((inputs, outputs))
        return nn.Linear(inputs, outputs)

    short(module=make, noise="predicted").fit(*data)
    ssvi.SSVIClassifier(module=make, epochs=1).fit(data[0], np.arange(80) % 3)
    assert asked == [(5, 2), (5, 3)]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(5, 3), r"makes \(2, 3\) from 2 examples, but \(2, 1\) is needed"),
        (nn.Linear(4, 1), r"cannot take inputs of shape \(2, 5\)"),
        (lambda inputs, outputs: "net", "is no network, and makes none"),
        ("net", "module='net' is no network"),
    ],
)
def test_a_network_that_does_not_fit_the_data(data, module, words):
    with pytest.raises(EstimatorError, match=words):
        short(module=module).fit(*data)


BAD = [
    {"density": 0}, {"density": 1.5}, {"density": "half"}, {"epochs": 0}, {"epochs": 2.5}, {"batch_size": 0}, {"samples": 0},
    {"every": 0}, {"rate": 0}, {"lr": -1.0}, {"prior_sigma": 0}, {"hidden": 50}, {"hidden": (50, 0)}, {"device": "gpu"},
]  # fmt: skip


@pytest.mark.parametrize("kind", [ssvi.SSVIRegressor, ssvi.SSVIClassifier])
@pytest.mark.parametrize("argument", BAD, ids=str)
def test_arguments_that_cannot_be_used_are_named_at_fit(data, kind, argument):
    estimator = kind(**argument)
    ((name, value),) = argument.items()
    with pytest.raises(EstimatorError) as caught:
        estimator.fit(data[0], (data[1] > 0).astype(int))
    assert f"{name}=" in str(caught.value)
    assert str(value[1] if name == "hidden" and value != 50 else value) in str(caught.value)


def sigmas(estimator):
    return torch.cat([layer.sigma.detach() for _, layer in ssvi.layers(estimator.bnn_)])


def test_partial_fit_goes_on_with_more_examples_in_the_bound(data):
    """sigma^2 is 1 / (N (h + delta)), and N doubles while h, the curvature per example, changes slowly."""
    X, y = data
    estimator = ssvi.SSVIRegressor(epochs=200, density=1.0, random_state=0).fit(X, y)
    before, mean, scale = sigmas(estimator), estimator.predict(X), estimator.y_scaler_.scale_.copy()
    estimator.partial_fit(X, y)
    assert estimator.n_examples_ == 160
    assert (sigmas(estimator) / before).square().median() == pytest.approx(0.5, rel=0.1)
    assert np.abs(estimator.predict(X) - mean).max() < 0.5 * y.std(), "it goes on from what it has learnt"
    assert np.array_equal(estimator.y_scaler_.scale_, scale)


def test_partial_fit_alone_learns(data):
    X, y = data
    estimator = ssvi.SSVIRegressor(random_state=0)
    for _ in range(60):
        estimator.partial_fit(X, y)
    assert estimator.score(X, y) > 0.9


def test_paces_rise_and_fall():
    planned, open_end = to_the_end(1000, every=20, rate=0.3), without_end(rate=0.3)
    assert [planned.lr_factor(step) for step in (0, 49, 50, 1000)] == pytest.approx([1 / 50, 1, 1, 0])
    assert [planned.rate(update) for update in (0, 25, 50)] == pytest.approx([0.3, 0.15, 0])
    assert open_end.lr_factor(3000) == pytest.approx(0.5)
    assert open_end.rate(2) == pytest.approx(0.1)


def test_a_frame_has_names_of_columns(data):
    frame = polars.DataFrame(data[0], schema=list("abcde"))
    estimator = short().fit(frame, data[1])
    assert estimator.feature_names_in_.tolist() == list("abcde")
    assert np.array_equal(estimator.predict(frame), short().fit(*data).predict(data[0]))
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(frame.rename({"a": "z"}))


def test_the_network_can_be_saved_and_summarised(data, tmp_path):
    estimator = short().fit(*data)
    ssvi.save(estimator.bnn_, tmp_path / "net.safetensors")
    plain = estimator.likelihood_.prepare(nn.Sequential(nn.Linear(5, 50), nn.ReLU(), nn.Linear(50, 1)))
    again = ssvi.load(tmp_path / "net.safetensors", plain)
    x = torch.randn(3, 5)
    with ssvi.at_mean(again), ssvi.at_mean(estimator.bnn_):
        assert torch.equal(again(x), estimator.bnn_(x))
    assert "whole network: 151 of 301 weights" in str(ssvi.summary(estimator.bnn_))


def test_a_bar_is_shown_on_request(data, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal then
    short(verbose=0).fit(*data)
    assert capsys.readouterr().err == ""
    short(verbose=1).fit(*data)
    assert "training" in capsys.readouterr().err
