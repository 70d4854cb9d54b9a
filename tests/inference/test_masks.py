"""The prior of masks and the probabilities of proposals, by hand and by counting."""

import itertools
import math
from collections import Counter

import pytest
import torch
from sampling import bits, probability_of_set

from ssvi.inference import masks
from ssvi.inference.masks import State


def test_the_prior_ratio_is_that_of_the_prior():
    """And it has the form of the paper: exp(-A (2 s k + k^2)) C(P, s) / C(P, s + k) for k births."""
    sizes, A = (5, 40), 0.03

    def log_prior(active):
        return sum(-A * s**2 - math.log(math.comb(P, s)) for P, s in zip(sizes, active, strict=True))

    for before, after in (((3, 20), (4, 22)), ((5, 40), (4, 38)), ((1, 1), (1, 4))):
        want = log_prior(after) - log_prior(before)
        assert masks.log_prior_ratio(sizes, before, after, A) == pytest.approx(want, rel=1e-9)
    birth = -A * (2 * 20 * 3 + 9) + math.log(math.comb(40, 20) / math.comb(40, 23))
    assert masks.log_prior_ratio((40,), (20,), (23,), A) == pytest.approx(birth, rel=1e-9)
    assert masks.log_prior_ratio(sizes, (1, 2), (0, 2), A) == -math.inf


def test_a_set_is_the_sum_over_its_orders():
    torch.manual_seed(0)
    score = torch.randn(6, dtype=torch.float64) * 2
    weight = {c: math.exp(score[c]) for c in range(6)}
    for count in (1, 2, 3):
        probabilities = {
            chosen: math.exp(masks.log_set(score, torch.tensor(chosen)))
            for chosen in itertools.combinations(range(6), count)
        }
        assert probabilities == pytest.approx({chosen: probability_of_set(weight, chosen) for chosen in probabilities})
        assert sum(probabilities.values()) == pytest.approx(1)
    far = torch.tensor([0.0, -1e5, -1e5, -2e5, -math.inf], dtype=torch.float64)
    assert masks.log_set(far, torch.tensor([3, 0])) == pytest.approx(-1e5 - math.log(2))


@pytest.mark.parametrize(("death", "on"), [(True, (1, 1, 1, 1, 1)), (True, (0, 1, 0, 1, 0)), (False, (0, 1, 0, 0, 0))])
def test_proposals_come_as_often_as_q_says(death, on):
    state = State(bits(*on), 0.0, torch.tensor([-0.1, -2.0, -1.0, 0.0, -3.0], dtype=torch.float64))
    torch.manual_seed(0)
    n, drawn = 6000, Counter()
    for i in range(n):
        drawn[tuple(sorted(masks.propose(state, death, 1 + i % 3).tolist()))] += 1
    expected = {chosen: n * math.exp(masks.log_proposal(state, torch.tensor(chosen))) for chosen in drawn}
    assert sum(expected.values()) == pytest.approx(n)
    chi2 = sum((drawn[c] - e) ** 2 / e for c, e in expected.items())
    freedom = len(expected) - 1
    assert chi2 < freedom + 4 * math.sqrt(2 * freedom)
