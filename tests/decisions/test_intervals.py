"""Conformal intervals of numbers: the promised coverage over random splits, and both kinds by hand."""

import math

import pytest
import torch

from ssvi.decisions import interval_threshold, intervals, residual_intervals, residual_threshold

SPLITS, N, REST = 200, 150, 1000


def pool(factor: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean, standard deviation as predicted (the true one times `factor`), and y with noise that depends on x."""
    generator = torch.Generator().manual_seed(5)
    x = torch.rand(N + REST, generator=generator, dtype=torch.float64)
    std = 0.1 + x
    y = x.sin() + std * torch.randn(N + REST, generator=generator, dtype=torch.float64)
    return x.sin(), factor * std, y


def by_residuals(mean, std, y, first, rest, level):
    threshold = residual_threshold(mean[first], std[first], y[first], level)
    return residual_intervals(mean[rest], std[rest], threshold)


def by_quantiles(mean, std, y, first, rest, level):
    lower, upper = mean - std, mean + std
    threshold = interval_threshold(lower[first], upper[first], y[first], level)
    return intervals(lower[rest], upper[rest], threshold)


@pytest.mark.parametrize("kind", [by_residuals, by_quantiles])
@pytest.mark.parametrize("factor", [1.0, 0.2, 5.0], ids=["calibrated", "too-certain", "too-careful"])
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_the_promised_coverage_holds_over_random_splits(kind, factor, level):
    mean, std, y = pool(factor)
    generator, covered = torch.Generator().manual_seed(0), []
    for _ in range(SPLITS):
        order = torch.randperm(len(y), generator=generator)
        first, rest = order[:N], order[N:]
        covered.append(kind(mean, std, y, first, rest, level).contain(y[rest]).double().mean())
    expected = math.ceil((N + 1) * level) / (N + 1)
    deviation = math.sqrt(expected * (1 - expected) * (1 / (N + 2) + 1 / REST) / SPLITS)
    assert abs(torch.stack(covered).mean().item() - expected) < 4 * deviation


def test_normalised_residuals_do_not_depend_on_the_scale_of_the_deviations():
    mean, std, y = pool(1.0)
    ends = [residual_intervals(mean, s, residual_threshold(mean, s, y, 0.9)).upper for s in (std, 7 * std)]
    assert torch.allclose(*ends, rtol=1e-12)


def test_both_kinds_by_hand():
    zero, one = torch.zeros(9), torch.ones(9)
    y = torch.arange(1.0, 10.0)
    assert residual_threshold(zero, 2 * one, y, 0.9) == 4.5
    assert interval_threshold(-one, one, y, 0.9) == 8
    result = intervals(torch.tensor([-1.0]), torch.tensor([1.0]), 8)
    assert (result.lower.item(), result.upper.item(), result.width.item()) == (-9, 9, 18)


def test_a_negative_threshold_makes_intervals_smaller_but_never_turns_them_round():
    result = intervals(torch.tensor([0.0, 0.0]), torch.tensor([4.0, 1.0]), -1)
    assert result.lower.tolist() == [1.0, 0.5]
    assert result.upper.tolist() == [3.0, 0.5]


def test_too_few_examples_give_all_numbers():
    two = torch.zeros(2)
    assert residual_threshold(two, two + 1, two, 0.9) == math.inf
    for result in (residual_intervals(two, two + 1, math.inf), intervals(two, two + 1, math.inf)):
        assert result.lower.tolist() == [-math.inf] * 2
        assert result.contain(torch.tensor([1e9, -1e9])).all()


@pytest.mark.parametrize("std", [0.0, -1.0, math.inf])
def test_deviations_must_be_positive(std):
    with pytest.raises(ValueError, match=r"std: .* at index 1 is not a positive number"):
        residual_intervals(torch.zeros(2), torch.tensor([1.0, std]), 1.0)


def test_crossed_quantiles_are_refused():
    with pytest.raises(ValueError, match="lower: 2 at index 1 is above upper, 1"):
        intervals(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]), 0.0)
