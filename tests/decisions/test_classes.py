"""Conformal sets of classes: the promised coverage over random splits, and the scores by hand."""

import math
from functools import partial

import pytest
import torch

from ssvi.decisions import aps, class_sets, class_threshold, lac

SPLITS = 200
SCORES = {"lac": lac, "aps": aps, "raps": partial(aps, penalty=0.02, free=2)}


def pool(n: int, sharpness: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels that are drawn from softmax(z), and what a network says: softmax(sharpness * z)."""
    generator = torch.Generator().manual_seed(3)
    z = 1.5 * torch.randn(n, 6, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(z.softmax(1), 1, generator=generator).squeeze(1)
    return (sharpness * z).softmax(1), labels


def coverages(probs, labels, validation, level, score):
    """The coverage on the rest of the examples, for each of 200 random splits."""
    generator = torch.Generator().manual_seed(0)
    values = []
    for _ in range(SPLITS):
        order = torch.randperm(len(labels), generator=generator)
        first, rest = order[:validation], order[validation:]
        threshold = class_threshold(probs[first], labels[first], level, score)
        values.append(class_sets(probs[rest], threshold, score)[range(len(rest)), labels[rest]].double().mean())
    return torch.stack(values)


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES.keys())
@pytest.mark.parametrize("sharpness", [1.0, 4.0], ids=["calibrated", "too-certain"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_promised_coverage_holds_over_random_splits(score, sharpness, level):
    """Its expectation is ceil((n + 1) level) / (n + 1) without ties; the mean of 200 splits is close to it."""
    n = 150
    covered = coverages(*pool(1150, sharpness), n, level, score)
    expected = math.ceil((n + 1) * level) / (n + 1)
    # One coverage has the variance of a Beta distribution, and of 1000 test examples; splits of one pool agree more.
    deviation = math.sqrt(expected * (1 - expected) * (1 / (n + 2) + 1 / 1000) / SPLITS)
    assert abs(covered.mean().item() - expected) < 4 * deviation


def test_a_threshold_that_ignores_the_finite_sample_would_fail():
    """The plain quantile of few scores covers less than was promised: the test above can fail."""
    probs, labels = pool(1150, 1.0)
    generator, plain = torch.Generator().manual_seed(0), []
    for _ in range(SPLITS):
        order = torch.randperm(len(labels), generator=generator)
        first, rest = order[:15], order[15:]
        scores = lac(probs[first]).gather(1, labels[first, None]).flatten()
        sets = class_sets(probs[rest], scores.quantile(0.8).item())
        plain.append(sets[range(len(rest)), labels[rest]].double().mean())
    assert torch.stack(plain).mean() < 0.78
    assert coverages(probs, labels, 15, 0.8, lac).mean() > 0.79


def test_the_scores_by_hand():
    probs = torch.tensor([[0.1, 0.6, 0.3], [0.4, 0.2, 0.4]], dtype=torch.float64)
    assert lac(probs)[0].tolist() == pytest.approx([0.9, 0.4, 0.7])
    assert aps(probs)[0].tolist() == pytest.approx([1.0, 0.6, 0.9])
    assert aps(probs)[1].tolist() == pytest.approx([0.4, 1.0, 0.8]), "equal ones keep the order of the classes"
    assert aps(probs, penalty=0.5, free=1)[0].tolist() == pytest.approx([1.0 + 2 * 0.5, 0.6, 0.9 + 0.5])
    assert aps(probs, penalty=0.5, free=2)[0].tolist() == pytest.approx([1.0 + 0.5, 0.6, 0.9]), "none is rewarded"


def test_a_tie_at_the_threshold_is_in_the_set():
    probs = torch.tensor([[0.7, 0.3]] * 10)
    labels = torch.tensor([0] * 8 + [1] * 2)
    assert class_sets(probs, class_threshold(probs, labels, 0.7)).tolist() == [[True, False]] * 10
    assert class_sets(probs, class_threshold(probs, labels, 0.9)).tolist() == [[True, True]] * 10


def test_too_few_examples_give_all_classes():
    probs, labels = pool(8, 1.0)
    threshold = class_threshold(probs, labels, 0.9)
    assert threshold == math.inf
    assert class_sets(probs, threshold).all()


def test_a_set_may_be_empty():
    assert not class_sets(torch.tensor([[0.5, 0.5]]), 0.2).any()


def test_nan_is_not_a_threshold():
    with pytest.raises(ValueError, match="threshold: got NaN"):
        class_sets(torch.tensor([[0.5, 0.5]]), math.nan)
