"""Temperature scaling: against a closed form, brute force and torch's own optimiser."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from ssvi import metrics
from ssvi.decisions import fit_temperature, scaled


def examples(n: int, sharpness: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels that are drawn from softmax(z), and probabilities softmax(sharpness * z): the right T is the sharpness."""
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(n, 5, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)
    return (sharpness * z).softmax(1), labels


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 3.0])
def test_the_temperature_undoes_what_made_the_probabilities_wrong(sharpness):
    probs, labels = examples(20_000, sharpness)
    temperature = fit_temperature(probs, labels)
    assert temperature == pytest.approx(sharpness, rel=0.03)
    assert metrics.ece(scaled(probs, temperature), labels) < 0.01


def test_two_classes_have_a_closed_form():
    """All p = (0.9, 0.1), a share of 3/4 right: softmax(log p / T) = (3/4, 1/4) where log 9 / T = log 3."""
    probs = torch.tensor([[0.9, 0.1]] * 4, dtype=torch.float64)
    assert fit_temperature(probs, torch.tensor([0, 0, 0, 1])) == pytest.approx(2.0, rel=1e-9)


def test_no_temperature_on_a_fine_grid_is_better():
    probs, labels = examples(300, 2.5)
    best = metrics.nll(scaled(probs, fit_temperature(probs, labels)), labels)
    grid = torch.logspace(-2, 2, 2000, dtype=torch.float64).tolist()
    assert best <= min(metrics.nll(scaled(probs, t), labels) for t in grid) + 1e-12


def test_torch_finds_the_same_minimum():
    probs, labels = examples(500, 1.7)
    inverse = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([inverse], tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = cross_entropy(inverse * probs.log(), labels)
        value.backward()
        return value

    optimizer.step(loss)
    assert fit_temperature(probs, labels) == pytest.approx(1 / inverse.item(), rel=1e-6)


def test_samples_are_averaged_first():
    drawn = torch.stack([examples(200, 2.0)[0], examples(200, 0.5, seed=1)[0]])
    labels = examples(200, 1.0)[1]
    assert fit_temperature(drawn, labels) == fit_temperature(drawn.mean(0), labels)


def test_the_range_ends_the_search():
    probs = torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
    assert fit_temperature(probs, torch.tensor([0, 1])) == pytest.approx(0.01)
    assert fit_temperature(probs, torch.tensor([1, 0])) == pytest.approx(100.0)


def test_scaling_keeps_the_order_and_one_changes_nothing():
    probs, _ = examples(100, 1.0)
    assert torch.allclose(scaled(probs, 1.0), probs, rtol=1e-12)
    assert torch.equal(scaled(probs, 7.0).argsort(1), probs.argsort(1))


def test_a_probability_of_zero_stays_finite():
    result = scaled(torch.tensor([[1.0, 0.0]]), 2.0)
    assert result[0, 1].item() == pytest.approx(math.sqrt(torch.finfo(torch.float32).tiny), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.inf, math.nan])
def test_other_temperatures_are_refused(temperature):
    with pytest.raises(ValueError, match="temperature: expected a positive number"):
        scaled(torch.tensor([[0.5, 0.5]]), temperature)
