"""Evaluation of predicted numbers, of yes and no, and of mixtures of networks."""

from dataclasses import asdict
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import ssvi
from ssvi import metrics
from ssvi.inference.links import LinkError
from ssvi.inference.predict import Mixture, draw_outputs, draw_probabilities
from ssvi.likelihoods import Bernoulli, Categorical, Gaussian, LikelihoodError, StudentT


def network(outputs, seed=0):
    torch.manual_seed(seed)
    return ssvi.to_bnn(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, outputs)), 0.5, sigma_init=0.1)


def inputs(n=60):
    return torch.randn(n, 6, generator=torch.Generator().manual_seed(1))


def numbers(n=60):
    return torch.randn(n, generator=torch.Generator().manual_seed(2))


def batches(y, size=25):
    return list(zip(inputs().split(size), y.split(size), strict=True))


def test_every_number_is_that_of_the_mixture():
    bnn, y = network(2), numbers()
    evaluation = ssvi.evaluate(bnn, batches(y), samples=4, likelihood=Gaussian("predicted"))
    drawn = draw_outputs(bnn, inputs(), samples=4).double().numpy()
    location, scale = drawn[..., 0], 1e-4 + np.exp(drawn[..., 1])
    mean, y = location.mean(0), y.double().numpy()
    assert (evaluation.examples, evaluation.samples) == (60, 4)
    assert evaluation.rmse == pytest.approx(np.sqrt(((mean - y) ** 2).mean()), rel=1e-5)
    assert evaluation.mae == pytest.approx(np.abs(mean - y).mean(), rel=1e-5)
    density = stats.norm.pdf(y, location, scale).mean(0)
    assert evaluation.nll == pytest.approx(-np.log(density).mean(), rel=1e-5)
    pit = stats.norm.cdf(y, location, scale).mean(0)
    assert evaluation.coverage_90 == pytest.approx(((pit >= 0.05) & (pit <= 0.95)).mean())
    assert evaluation.coverage_50 == pytest.approx(((pit >= 0.25) & (pit <= 0.75)).mean())
    assert evaluation.pit_error == pytest.approx(metrics.pit_error(torch.from_numpy(pit)), rel=1e-5)
    share = location.var(0) / (location.var(0) + (scale**2).mean(0))
    assert evaluation.model_share == pytest.approx(share.mean(), rel=1e-4)
    scoringrules = pytest.importorskip("scoringrules")
    assert evaluation.crps == pytest.approx(scoringrules.crps_mixnorm(y, location.T, scale.T).mean(), rel=1e-5)


def test_numbers_and_their_intervals_come_in_the_units_of_the_data():
    bnn, y = network(1), numbers()
    plain = ssvi.evaluate(bnn, batches(y), likelihood=Gaussian(0.8))
    units = ssvi.evaluate(bnn, batches(y), likelihood=Gaussian(0.8), scale=20.0, shift=300.0)
    for name in ("rmse", "mae", "crps", "width_50", "width_90"):
        assert getattr(units, name) == pytest.approx(20 * getattr(plain, name))
        assert units.intervals[name] == pytest.approx([20 * end for end in plain.intervals[name]])
    assert units.nll == pytest.approx(plain.nll + np.log(20))
    for name in ("coverage_50", "coverage_90", "pit_error", "model_share"):
        assert getattr(units, name) == pytest.approx(getattr(plain, name))
    assert units.outputs.targets.mean() == pytest.approx(float(20 * y.double().mean() + 300))
    assert units.outputs.prediction.mean.mean() == pytest.approx(float(20 * plain.outputs.prediction.mean.mean() + 300))


def test_the_keys_of_the_json_and_an_interval_for_each_number():
    evaluation = ssvi.evaluate(network(1), batches(numbers()), likelihood=StudentT(0.5), samples=2)
    assert list(asdict(evaluation)) == [
        "examples", "samples", "rmse", "mae", "nll", "crps", "coverage_50", "width_50", "coverage_90", "width_90",
        "pit_error", "model_share",
    ]  # fmt: skip
    assert list(evaluation.intervals) == list(asdict(evaluation))[2:]
    for name, (low, high) in evaluation.intervals.items():
        assert low <= getattr(evaluation, name) <= high


def test_several_targets_have_a_unit_each():
    bnn, y = network(2), torch.stack([numbers(), numbers().flip(0)], -1)
    scale = torch.tensor([1.0, 100.0])
    evaluation = ssvi.evaluate(bnn, batches(y), likelihood=Gaussian(0.5, targets=2), scale=scale)
    mean = draw_outputs(bnn, inputs()).double().mean(0)
    assert evaluation.rmse == pytest.approx(metrics.rmse(mean * scale, y.double() * scale), rel=1e-5)


def test_the_thetas_are_those_of_classes_and_batches_change_nothing():
    bnn = network(3)
    drawn = draw_outputs(bnn, inputs(), samples=4, seed=3)
    assert torch.equal(drawn.softmax(-1), draw_probabilities(bnn, inputs(), samples=4, seed=3))
    number = network(1)
    small, large = (ssvi.evaluate(number, batches(numbers(), n), likelihood=Gaussian(1.0)) for n in (7, 60))
    assert small.nll == pytest.approx(large.nll, rel=1e-6)


def test_a_likelihood_of_classes_gives_the_numbers_of_classes():
    bnn, y = network(3), torch.randint(3, (60,), generator=torch.Generator().manual_seed(0))
    assert ssvi.evaluate(bnn, batches(y), likelihood=Categorical(3)) == ssvi.evaluate(bnn, batches(y))


def test_yes_and_no_are_two_classes():
    bnn, y = network(1), (numbers() > 0).float()
    evaluation = ssvi.evaluate(bnn, batches(y), likelihood=Bernoulli())
    p = draw_probabilities_of_yes(bnn)
    probs = torch.stack([1 - p, p], -1)
    assert evaluation.accuracy == metrics.accuracy(probs, y.long())
    assert evaluation.nll == pytest.approx(metrics.nll(probs, y.long()), rel=1e-5)
    assert evaluation.outputs.labels.tolist() == y.long().tolist()


def draw_probabilities_of_yes(bnn):
    return draw_outputs(bnn, inputs()).sigmoid().mean(0).squeeze(-1)


def test_a_mixture_of_networks_has_a_sample_of_each():
    members = [nn.Linear(6, 1) for _ in range(3)]
    likelihood = Gaussian()
    mixture = Mixture(likelihood.prepare(member) for member in members)
    evaluation = ssvi.evaluate(mixture, batches(numbers()), likelihood=likelihood)
    locations = torch.stack([member(inputs()).detach().squeeze(-1) for member in members])
    assert evaluation.samples == 3
    assert torch.allclose(evaluation.outputs.prediction.location, locations.double(), atol=1e-6)
    prediction = ssvi.predict(mixture, inputs(), likelihood=likelihood)
    assert torch.allclose(prediction.location, locations.double(), atol=1e-6)
    assert not prediction.location.requires_grad


def test_a_notebook_shows_the_numbers_and_two_plots():
    markup = ssvi.evaluate(network(1), batches(numbers()), likelihood=Gaussian(1.0))._repr_html_()
    parsed = ElementTree.fromstring(markup)
    titles = [plot.get("aria-label") for plot in parsed.iter("svg")]
    assert titles == ["histogram of the probability integral transform", "coverage of intervals"]
    cells = [cell.text for cell in parsed.iter("td")]
    assert {"rmse", "crps", "coverage 90", "pit error", "model share"} <= set(cells)


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 1)

    def forward(self, x):
        return {"boxes": self.layer(x)}


@pytest.mark.parametrize(
    ("net", "y", "settings", "error", "message"),
    [
        (nn.Linear(6, 1), numbers().long(), {"likelihood": Gaussian(1.0)}, LikelihoodError, "y has dtype torch.int64"),
        (nn.Linear(6, 3), numbers(), {"likelihood": Gaussian(1.0)}, LikelihoodError, r"of shape \(1, 60, 3\)"),
        (nn.Linear(6, 2), numbers()[:, None].expand(-1, 2) > 0, {"likelihood": Bernoulli(2)}, LikelihoodError,
         "YesNoPrediction.* evaluate each question by itself"),
        (nn.Linear(6, 3), numbers().long(), {"scale": 2.0}, LikelihoodError, "scale=2.0, shift=0.0: classes have no unit"),
        (Named(), numbers(), {"likelihood": Gaussian(1.0)}, LinkError, "the network gives dict with boxes, and a"),
    ],
)  # fmt: skip
def test_what_is_refused(net, y, settings, error, message):
    with pytest.raises(error, match=message):
        ssvi.evaluate(net, batches(y), **settings)
