"""Outputs and evaluation of a network over a loader."""

from dataclasses import FrozenInstanceError, asdict

import pytest
import torch
from torch import nn

import ssvi
from ssvi import metrics
from ssvi.inference.evaluate import HEADLINE, collect, evaluate_outputs
from ssvi.inference.predict import draw_probabilities


def network(**changes):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    return ssvi.to_bnn(net, 0.5, **({"sigma_init": 0.3} | changes))


def examples(n=60):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(n, 6, generator=generator), torch.randint(3, (n,), generator=generator)


def batches(size):
    x, y = examples()
    return list(zip(x.split(size), y.split(size), strict=True))


def test_batches_of_any_size_see_the_same_networks():
    bnn = network()
    whole, split = (collect(bnn, batches(size), samples=4) for size in (60, 7))
    assert torch.allclose(whole.drawn, split.drawn, atol=1e-6)
    assert (whole.drawn[0] - whole.drawn[1]).abs().max() > 0.01


def test_the_seed_decides_and_global_random_numbers_are_left_alone():
    bnn, state = network(), torch.get_rng_state()
    first, again, other = (collect(bnn, batches(60), seed=seed).drawn for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)


def test_inside_at_mean_the_posterior_mean_is_evaluated():
    bnn = network()
    with ssvi.at_mean(bnn):
        evaluation = ssvi.evaluate(bnn, batches(60), samples=5)
    plain = ssvi.evaluate(ssvi.mean(bnn), batches(60))
    assert (evaluation.samples, evaluation.mutual_information) == (1, 0.0)
    assert evaluation.nll == pytest.approx(plain.nll, rel=1e-5)


def test_uncertainty_of_data_and_of_the_model_add_up():
    outputs = collect(network(), batches(60), samples=8)
    assert torch.allclose(outputs.data_uncertainty + outputs.model_uncertainty, outputs.entropy)
    assert torch.allclose(outputs.data_uncertainty, metrics.entropy(outputs.drawn).mean(0), atol=1e-6)
    assert (outputs.model_uncertainty > 0).all()


def test_a_deterministic_network_has_one_sample_and_no_model_uncertainty():
    outputs = collect(ssvi.mean(network()), batches(60), samples=5)
    assert outputs.drawn.shape == (1, 60, 3)
    assert outputs.model_uncertainty.abs().max() == 0


def test_every_headline_number_is_the_metric_and_has_its_interval():
    bnn = network()
    evaluation = ssvi.evaluate(bnn, batches(60))
    outputs = collect(bnn, batches(60))
    for name, metric in HEADLINE.items():
        low, high = evaluation.intervals[name]
        assert getattr(evaluation, name) == metric(outputs.probs, outputs.labels)
        assert low <= getattr(evaluation, name) <= high
    assert evaluation.intervals["nll"] == metrics.bootstrap(metrics.nll, outputs.probs, outputs.labels)


def test_an_evaluation_as_a_dictionary_has_the_numbers_only():
    """These are the keys of result.json in a run folder."""
    evaluation = ssvi.evaluate(network(), batches(60))
    assert list(asdict(evaluation)) == [
        "examples", "samples", *HEADLINE, "entropy", "mutual_information",
    ]  # fmt: skip
    assert all(isinstance(value, int | float) for value in asdict(evaluation).values())


def test_an_evaluation_cannot_be_changed():
    evaluation = ssvi.evaluate(network(), batches(60))
    with pytest.raises(FrozenInstanceError):
        evaluation.accuracy = 1.0


def test_intervals_are_computed_when_they_are_asked_for_and_once(monkeypatch):
    resampled = []
    monkeypatch.setattr(metrics, "bootstrap", lambda metric, *args, **settings: resampled.append(metric) or (0.0, 1.0))
    evaluation = ssvi.evaluate(network(), batches(60))
    assert resampled == []
    assert evaluation.intervals is evaluation.intervals
    assert resampled == list(HEADLINE.values())


def test_outputs_that_were_collected_before_give_the_same_evaluation():
    bnn = network()
    assert evaluate_outputs(collect(bnn, batches(60), samples=3)) == ssvi.evaluate(bnn, batches(60), samples=3)


def test_mode_comes_back_after_an_error():
    bnn = network().train()
    with pytest.raises((RuntimeError, ValueError), match=r"fit|mat"):
        collect(bnn, [(torch.randn(4, 5), torch.zeros(4, dtype=torch.long))])
    assert bnn.training


@pytest.mark.parametrize("samples", [0, -1])
def test_fewer_than_one_sample_is_an_error(samples):
    with pytest.raises(ValueError, match=f"samples={samples}"):
        draw_probabilities(network().eval(), examples()[0], samples=samples)


def test_an_empty_loader_is_an_error():
    with pytest.raises(ValueError, match="loader"):
        ssvi.evaluate(network(), [])
