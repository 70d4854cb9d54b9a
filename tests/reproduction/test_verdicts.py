"""The rules of the verdicts on numbers by hand: every outcome of each."""

import pytest

from ssvi.reproduction.verdicts import (
    CANNOT,
    NOT_REPEATED,
    REPEATED,
    Quantity,
    Side,
    Verdict,
    is_best,
    is_better,
    is_within,
    none_is_better,
    spread,
    tally,
)

MORE, LESS = Quantity(True, "{:.2f}".format), Quantity(False, "{:.2f}".format)


def side(name: str, mean: float, std: float = 1.0) -> Side:
    """Three seeds with this mean and standard deviation."""
    return Side(name, (mean - std, mean, mean + std))


def test_the_spread_is_that_of_a_difference_between_two_runs():
    assert side("a", 5, 3).std == pytest.approx(3)
    assert spread(side("a", 5, 3), side("b", 0, 4)) == pytest.approx(5)


@pytest.mark.parametrize(
    ("own", "outcome", "how"),
    [(12.0, REPEATED, "a 12.00 against b 10.00"), (11.0, NOT_REPEATED, "within the spread"), (9.0, NOT_REPEATED, "within"),
     (8.0, NOT_REPEATED, "the other way round")],
)  # fmt: skip
def test_better_is_more_than_the_spread(own, outcome, how):
    verdict = is_better("claim", side("a", own), side("b", 10.0), MORE)
    assert (verdict.outcome, verdict.claim) == (outcome, "claim")
    assert how in verdict.why
    turned = is_better("claim", side("a", 20 - own), side("b", 10.0), LESS)
    assert turned.outcome == outcome, "of a loss less is better"


@pytest.mark.parametrize("rule", [is_better, lambda c, a, b, q: is_within(c, "loss", a, b, 1.0, q)])
@pytest.mark.parametrize(
    ("other", "why"), [(Side("b", ()), "no finished run of b"), (Side("b", (1.0,)), "one seed of b has no spread")]
)
def test_without_several_seeds_nothing_is_compared(rule, other, why):
    verdict = rule("claim", side("a", 1.0), other, MORE)
    assert verdict.outcome == CANNOT
    assert why in verdict.why


def test_the_best_is_ahead_of_every_other_by_more_than_the_spread():
    own = side("own", 10.0)
    assert is_best("c", own, [side("x", 8.0), side("y", 7.0)], MORE).outcome == REPEATED
    level = is_best("c", own, [side("x", 9.0), side("y", 7.0)], MORE)
    assert (level.outcome, level.why) == (NOT_REPEATED, "own 10.00; x 9.00 within the spread")
    behind = is_best("c", own, [side("x", 12.0), side("y", 10.5)], MORE)
    assert behind.why == "own 10.00; x 12.00 ahead; y 10.50 within the spread"
    assert is_best("c", own, [side("x", 12.0)], LESS).outcome == REPEATED
    assert is_best("c", own, [], MORE) == Verdict("c", CANNOT, "there is nothing to compare with")


def test_as_good_as_the_others_needs_no_lead():
    own = side("own", 10.0)
    assert none_is_better("c", own, [side("x", 11.0), side("y", 5.0)], MORE).outcome == REPEATED
    worse = none_is_better("c", own, [side("x", 11.0), side("y", 12.0)], MORE)
    assert (worse.outcome, worse.why) == (NOT_REPEATED, "own 10.00; y 12.00 ahead")
    assert none_is_better("c", Side("own", (1.0,)), [side("x", 11.0)], MORE).outcome == CANNOT


@pytest.mark.parametrize(
    ("own", "outcome", "how"),
    [(9.9, REPEATED, "loss 0.10, limit 2.00"), (9.0, NOT_REPEATED, "within the spread of the limit"),
     (5.0, NOT_REPEATED, "loss 5.00")],
)  # fmt: skip
def test_a_limit_is_kept_spread_included(own, outcome, how):
    verdict = is_within("c", "loss", side("own", own, 0.9), side("dense", 10.0, 0.9), 2.0, MORE)
    assert verdict.outcome == outcome
    assert verdict.why.startswith(how)


def test_the_claims_of_an_item_are_counted():
    made = [Verdict("", outcome, "") for outcome in (REPEATED, NOT_REPEATED, REPEATED)]
    assert tally(made) == "2 repeated, 1 not repeated"
    assert tally([Verdict("", CANNOT, "")]) == "1 cannot be compared"
