"""The interval of the debiased calibration error: by simulation, where the truth is known."""

import pytest
import torch

from ssvi import metrics
from ssvi.metrics.calibration import class_wise_squares, sorted_classes
from ssvi.metrics.resampling import bootstrap


def predictions(n: int, classes: int, generator: torch.Generator, power: float = 1.0):
    """Probabilities p, and labels drawn from p^power: calibrated for power 1, too certain below."""
    probs = (2 * torch.randn(n, classes, dtype=torch.float64, generator=generator)).softmax(1)
    true = (power * probs.log()).softmax(1)
    return probs, torch.multinomial(true, 1, generator=generator).squeeze(1)


def ends(n, classes, power, count):
    """Intervals of that many data sets."""
    generator = torch.Generator().manual_seed(1)
    data = [predictions(n, classes, generator, power) for _ in range(count)]
    return [bootstrap(metrics.marginal_calibration_error, *one, resamples=60, seed=i) for i, one in enumerate(data)]


def binned_truth(classes, power):
    """The error without noise: that of very many examples."""
    return metrics.marginal_calibration_error(*predictions(200_000, classes, torch.Generator().manual_seed(0), power))


def test_the_squares_of_calibrated_predictions_are_0_on_average():
    generator = torch.Generator().manual_seed(0)
    squares = torch.stack(
        [
            class_wise_squares(
                sorted_classes(*predictions(150, 3, generator)), torch.ones(150, dtype=torch.long)
            ).mean()
            for _ in range(300)
        ]
    )
    assert abs(squares.mean()) < 3 * squares.std() / 300**0.5
    assert 0.3 < (squares < 0).double().mean() < 0.8


@pytest.mark.parametrize(("n", "classes"), [(100, 2), (359, 10)])
def test_calibrated_predictions_cannot_be_told_from_0(n, classes):
    found = ends(n, classes, 1.0, 30)
    assert sum(low == 0 for low, _ in found) >= 29
    assert all(high > 0 for _, high in found)


@pytest.mark.parametrize("n", [150, 600])
def test_the_upper_end_covers_a_small_error_that_cannot_be_told_from_0(n):
    truth, found = binned_truth(4, 0.8), ends(n, 4, 0.8, 40)
    assert sum(low == 0 for low, _ in found) >= 5, "the case that is tested"
    assert sum(low <= truth <= high for low, high in found) >= 37
    assert max(high for _, high in found) < 8 * truth, "a bound that says something"


def test_a_large_error_is_told_from_0_and_covered():
    truth, found = binned_truth(4, 0.4), ends(600, 4, 0.4, 30)
    assert all(low > 0 for low, _ in found)
    assert sum(low <= truth <= high for low, high in found) >= 27


def test_weighted_squares_are_those_of_repeated_examples():
    probs, labels = predictions(120, 4, torch.Generator().manual_seed(0))
    weights = torch.randint(0, 4, (120,), generator=torch.Generator().manual_seed(1))
    again = torch.arange(120).repeat_interleave(weights)
    repeated = class_wise_squares(sorted_classes(probs[again], labels[again]), torch.ones(len(again), dtype=torch.long))
    assert torch.allclose(class_wise_squares(sorted_classes(probs, labels), weights), repeated, rtol=1e-9)


def test_the_error_itself_is_never_above_its_upper_end():
    """With many classes, of which each is clipped by itself, it would be."""
    probs, labels = predictions(400, 60, torch.Generator().manual_seed(0))
    low, high = bootstrap(metrics.marginal_calibration_error, probs, labels, resamples=40)
    assert low <= metrics.marginal_calibration_error(probs, labels) <= high
