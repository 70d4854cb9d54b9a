"""Tables and verdicts of the items on runs by hand."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from grids import by_hand

from ssvi.comparison import EvaluatedRun, rows
from ssvi.reproduction import show_flops, show_sweeps, show_tables
from ssvi.reproduction.grids import Grid, planned
from ssvi.reproduction.results import SetupResults, difference, span
from ssvi.reproduction.scales import DIGITS, MINUTES, PAPER, PAPER_10
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED

NOISE = (-0.001, 0.0, 0.001)
"""What the three seeds have more or less than their mean; the standard deviation is 0.001."""


def seeds(
    method: str, density: float | None, varied: Mapping[str, object] | None = None, **means: float
) -> list[EvaluatedRun]:
    """Three runs with these means of their metrics."""
    made = [
        by_hand(method, density, seed, **{name: mean + noise for name, mean in means.items()})
        for seed, noise in enumerate(NOISE)
    ]
    return [replace(run, place=replace(run.place, varied=dict(varied or {}))) for run in made]


def sparse(runs: list[EvaluatedRun], live: float) -> list[EvaluatedRun]:
    return [replace(run, cost=replace(run.cost, live_weights=live)) for run in runs]


def results(*groups: list[EvaluatedRun], setup=DIGITS) -> list[SetupResults]:
    """The rows of these runs; no run folder is there, so there is nothing to plot."""
    plan = planned(Grid(DIGITS, ("vi",)), (0,), Path("nowhere"))
    return [SetupResults(setup, tuple(plan), tuple(rows([run for group in groups for run in group])))]


def outcomes(shown) -> list[str]:
    return [verdict.outcome for verdict in shown.verdicts]


def table_1(sparse_accuracy: float, setup=DIGITS, scale=MINUTES):
    ours = {"accuracy": sparse_accuracy, "marginal_calibration_error": 0.01}
    groups = [seeds(method, 0.05, **ours) for method in ("ssvi-lrt", "ssvi")]
    dense = seeds("vi", None, accuracy=0.95, marginal_calibration_error=0.012)
    return show_tables.table_1(results(dense, *groups, setup=setup), scale)


def test_table_1_holds_the_limits_of_the_paper_and_has_its_rows_beside_ours():
    shown = table_1(0.94)
    assert outcomes(shown) == [REPEATED] * 4 + [CANNOT]
    assert "is not CIFAR-10 with ResNet-18" in shown.verdicts[-1].why
    assert outcomes(table_1(0.93))[0] == NOT_REPEATED
    head, first, second, third = (
        list(map(str, row)) for row in (shown.tables[0].table.head, *shown.tables[0].table.rows)
    )
    assert head[1] == "paper, CIFAR-10: accuracy"
    assert "95.13%" in first[1]
    assert "93.69%" in second[1]
    assert "94.00% ± 0.10%" in second[6]
    assert "'-'" in third[1], "the paper has no natural gradients"


@pytest.mark.parametrize(("accuracy", "outcome"), [(0.9375, REPEATED), (0.9300, NOT_REPEATED)])
def test_at_the_scale_of_the_paper_the_printed_numbers_count(accuracy, outcome):
    assert outcomes(table_1(accuracy, PAPER_10, PAPER))[-1] == outcome


def test_table_2_tells_rivals_that_are_as_sparse_from_those_that_are_not():
    ours = {"accuracy": 0.90, "nll": 0.3, "marginal_calibration_error": 0.01}
    own = sparse(seeds("ssvi-lrt", 0.05, **ours), 50)
    weaker = sparse(seeds("aeb", 0.05, accuracy=0.85, nll=0.4, marginal_calibration_error=0.02), 55)
    denser = sparse(seeds("sbp", None, accuracy=0.92, nll=0.2, marginal_calibration_error=0.01), 400)
    shown = show_tables.table_2(results(own, weaker, denser), MINUTES)
    by_claim = {verdict.claim: verdict for verdict in shown.verdicts}
    assert by_claim["digits: SSVI, LRT has the best accuracy of all sparse BNNs"].why == (
        "SSVI, LRT (95% sparse) 90.00%; SBP (60% sparse) 92.00% ahead"
    )
    assert by_claim["digits: SSVI, LRT has the best accuracy of those as sparse as it"].outcome == REPEATED
    assert by_claim["digits: SSVI, LRT takes the fewest training FLOPs"].outcome == NOT_REPEATED, "all are equal here"
    alone = show_tables.table_2(results(own, denser), MINUTES)
    assert "nothing to compare" in alone.verdicts[1].why


def density_item(ours: float, rigl: float):
    groups = [seeds(method, 0.5, accuracy=0.95) for method in ("ssvi-lrt", "ssvi", "rigl")]
    groups += [
        seeds("ssvi-lrt", 0.01, accuracy=ours),
        seeds("ssvi", 0.01, accuracy=ours),
        seeds("rigl", 0.01, accuracy=rigl),
    ]
    return show_sweeps.density(results(*groups), MINUTES)


def test_density_compares_what_is_lost_seed_by_seed():
    assert outcomes(density_item(0.9, 0.8)) == [REPEATED] * 2
    assert density_item(0.8, 0.9).verdicts[0].why.startswith("the other way round: SSVI, LRT 15.00 points")
    dense, lost = {0: 0.9, 1: 0.8}, {0: 0.5, 2: 0.1}
    assert difference("x", dense, lost).values == pytest.approx((0.4,)), "the seeds that both have"
    assert span("x", [{0: 1.0, 1: 5.0}, {0: 4.0, 1: 2.0}]).values == (3.0, 3.0)
    assert span("x", []).values == ()


def sigma0(by_start: Mapping[float, tuple[float, float]]):
    groups = []
    for start, (ours, dense) in by_start.items():
        groups += [seeds("ssvi-lrt", 0.1, {"sigma_init": start}, accuracy=ours)]
        groups += [seeds("vi", None, {"sigma_init": start}, accuracy=dense)]
    return show_sweeps.sigma0(results(*groups), MINUTES)


def test_sigma0_asks_who_depends_more_on_the_start():
    as_in_paper = {1e-3: (0.9, 0.92), 1e-2: (0.9, 0.85), 1e-1: (0.88, 0.3)}
    assert outcomes(sigma0(as_in_paper)) == [REPEATED] * 3
    not_so = {1e-3: (0.9, 0.92), 1e-2: (0.9, 0.93), 1e-1: (0.5, 0.9)}
    assert outcomes(sigma0(not_so)) == [NOT_REPEATED] * 3


CRITERIA = ("abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs", "snr_exp_abs", "snr_abs_textbook")


def removal(**better: float):
    groups = [seeds("ssvi-lrt", 0.1, {"removal": name}, accuracy=better.get(name, 0.8)) for name in CRITERIA]
    return show_sweeps.removal(results(*groups), MINUTES)


def test_removal_leaves_out_the_twin_of_criterion_4():
    assert outcomes(removal(snr=0.9, snr_abs=0.9, snr_abs_textbook=0.95)) == [REPEATED] * 2
    assert outcomes(removal(snr_abs=0.9, abs_mu=0.9)) == [NOT_REPEATED] * 2


def test_addition_and_fresh_sigma_are_claims_that_nothing_is_better():
    def addition(at_mean: float, steps: float):
        groups = [
            seeds("ssvi-lrt", 0.1, {"addition": name}, accuracy=a) for name, a in (("sample", 0.9), ("mean", at_mean))
        ]
        groups += [seeds("ssvi-lrt", 0.1, {"mc_steps": k}, accuracy=a) for k, a in ((1, 0.9), (4, steps))]
        return show_sweeps.addition(results(*groups), MINUTES)

    def fresh(smallest: float, other: float):
        values = {"mean": 0.9, 1e-4: smallest, 1e-2: other}
        groups = [seeds("ssvi-lrt", 0.1, {"fresh_sigma": name}, accuracy=a) for name, a in values.items()]
        return show_sweeps.fresh(results(*groups), MINUTES)

    assert outcomes(addition(0.9, 0.8)) == [REPEATED] * 2
    assert outcomes(addition(0.95, 0.95)) == [NOT_REPEATED] * 2
    assert outcomes(fresh(0.85, 0.9)) == [REPEATED] * 2
    assert outcomes(fresh(0.9, 0.95)) == [NOT_REPEATED] * 2


def test_posteriors_work_if_they_are_near_the_gaussian():
    groups = [
        seeds("ssvi-lrt", 0.1, {"posterior": name}, accuracy=accuracy)
        for name, accuracy in (("gaussian", 0.9), ("laplace", 0.895), ("student-t", 0.8))
    ]
    assert outcomes(show_sweeps.posteriors(results(*groups), MINUTES)) == [REPEATED, NOT_REPEATED]


def test_the_flops_of_the_paper_are_counted_again():
    shown = show_flops.flops_item([], MINUTES)
    assert outcomes(shown) == [REPEATED, REPEATED, NOT_REPEATED, NOT_REPEATED]
    by_name = {count.what: count for count in show_flops.counts()}
    assert by_name["VD"].ours == pytest.approx(6 * 2 * 555.42e6 * 50_000 * 200, rel=1e-3)
    assert by_name["VD"].printed == pytest.approx(by_name["VD"].ours, rel=0.01)
    assert by_name["SBP"].ours == pytest.approx(by_name["VD"].ours / 2)
