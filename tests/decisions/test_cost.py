"""Decisions by expected cost: by hand, against brute force, and matrices that are refused."""

import math

import pytest
import torch

from ssvi.decisions import CostMatrix, decide, expected_costs


def random_probs(n: int, classes: int) -> torch.Tensor:
    return torch.randn(n, classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(1)


ILL = CostMatrix(("healthy", "ill"), ("send home", "treat"), ((0.0, 1.0), (20.0, 2.0)))


def test_by_hand():
    """At p(ill) = 0.1 sending home costs 2, treating 1.1: the most probable class would say "healthy"."""
    probs = torch.tensor([[0.9, 0.1], [0.99, 0.01]], dtype=torch.float64)
    assert expected_costs(probs, ILL).tolist() == [pytest.approx([2.0, 1.1]), pytest.approx([0.2, 1.01])]
    assert [ILL.actions[a] for a in decide(probs, ILL)] == ["treat", "send home"]


def test_no_other_action_is_cheaper():
    probs, costs = random_probs(50, 4), torch.rand(4, 7, generator=torch.Generator().manual_seed(1))
    chosen = decide(probs, costs).tolist()
    for p, a in zip(probs.tolist(), chosen, strict=True):
        brute = [sum(p[k] * costs[k, b].item() for k in range(4)) for b in range(7)]
        assert brute[a] == pytest.approx(min(brute))


def test_equal_costs_of_all_mistakes_name_the_most_probable_class():
    probs = random_probs(100, 5)
    assert torch.equal(decide(probs, 1 - torch.eye(5)), probs.argmax(1))


def test_reject_is_taken_where_the_most_probable_class_is_not_probable_enough():
    """With costs 0 and 1, naming a class costs 1 - p_max, so 0.3 rejects where p_max < 0.7 (Chow 1970)."""
    probs = random_probs(200, 3)
    actions = decide(probs, 1 - torch.eye(3), reject=0.3)
    assert torch.equal(actions == 3, probs.amax(1) < 0.7)
    assert 0 < (actions == 3).sum() < 200


def test_reject_as_an_action_of_the_matrix():
    probs = random_probs(100, 2)
    matrix = ILL.with_reject(0.8)
    assert matrix.actions == ("send home", "treat", "reject")
    assert torch.equal(decide(probs, matrix), decide(probs, ILL, reject=0.8))


def test_of_equal_actions_the_first_is_taken():
    assert decide(torch.tensor([[0.5, 0.5]]), torch.ones(2, 3), reject=1.0).tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b"), ("x",), ((1.0,),)), "expected 2 rows"),
        ((("a", "b"), ("x",), ((1.0,), (1.0, 2.0))), "got 2 rows of 1, 2 numbers"),
        ((("a", "a"), ("x",), ((1.0,), (2.0,))), "classes: expected names that all differ"),
        ((("a",), (), ((),)), "actions: expected names that all differ, got none"),
        ((("a", "b"), ("x",), ((1.0,), (math.inf,))), "the row of 'b'"),
        ((("a", "b"), ("x",), ((math.nan,), (1.0,))), "the row of 'a'"),
    ],
)
def test_matrices_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CostMatrix(*arguments)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (torch.ones(3, 2), r"costs: expected shape \(2, actions\)"),
        (torch.ones(2), r"costs: expected shape"),
        (torch.tensor([[1.0], [math.inf]]), "finite number"),
    ],
)
def test_tensors_that_are_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        expected_costs(torch.tensor([[0.5, 0.5]]), costs)


def test_the_cost_of_reject_must_be_finite():
    with pytest.raises(ValueError, match="reject: expected a finite cost"):
        decide(torch.tensor([[0.5, 0.5]]), ILL, reject=math.nan)
