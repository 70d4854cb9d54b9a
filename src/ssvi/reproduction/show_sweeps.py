"""The paper's figures: accuracy over density, over the start of sigma, and by the criteria of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ssvi.comparison import Row
from ssvi.methods import about
from ssvi.reproduction import sweep_cards
from ssvi.reproduction.results import SetupResults, difference, span
from ssvi.reproduction.scales import ABLATED, OURS, PAPERS_METHOD, Scale
from ssvi.reproduction.shown import ACCURACY, CALIBRATION, ECE, NLL, Shown, TitledTable, metrics_table
from ssvi.reproduction.verdicts import Quantity, Side, Verdict, is_best, is_better, is_within, none_is_better

POINTS = Quantity(False, lambda value: f"{100 * value:.2f} points")
"""Of accuracy that are lost: the fewer the better."""

WORKS = 0.02
"""A posterior that works is within so much of the Gaussian's accuracy: what the paper calls comparable in Table 1."""

METRICS = (ACCURACY, NLL, CALIBRATION, ECE)
TWIN, TEXTBOOK, BEST = "snr", "snr_abs_textbook", "snr_abs"
"""Criterion 2, which chooses the same weights as criterion 4; criterion 4 as printed, in float32; criterion 4."""


def density(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """How much accuracy is lost from the densest network to the sparsest, against RigL."""
    verdicts = []
    for each in results:
        densities = [row.density for row in each.rows if row.density is not None]
        most, least = max(densities), min(densities)
        losses = {method: _loss(each, method, most, least) for method in (PAPERS_METHOD, OURS, "rigl")}
        for method in (PAPERS_METHOD, OURS):
            claim = f"from density {most:g} to {least:g} {about(method).title} loses less accuracy than RigL"
            verdicts.append(is_better(claim, losses[method], losses["rigl"], POINTS))
    plots = sweep_cards.over(results, "density", ("accuracy", "nll"), ("method",), log_x=True)
    return Shown(tuple(verdicts), _tables(results), plots)


def _loss(results: SetupResults, method: str, most: float, least: float) -> Side:
    dense, sparse = (results.by_seed(ACCURACY, method, density) for density in (most, least))
    return difference(about(method).title, dense, sparse)


def sigma0(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """How much the accuracy depends on the start of sigma, against dense VI."""
    verdicts = [verdict for each in results for verdict in _robust(each)]
    plots = sweep_cards.over(results, "sigma_init", ("accuracy", "nll"), ("method",), log_x=True)
    note = "SSVI has the criterion of the recipe alone here; the paper's figure has one line for each criterion."
    return Shown(tuple(verdicts), _tables(results), plots, (note,))


def _robust(results: SetupResults) -> list[Verdict]:
    starts = _values(results, "sigma_init")
    ours = [results.by_seed(ACCURACY, PAPERS_METHOD, ABLATED[0], sigma_init=start) for start in starts]
    dense = [results.by_seed(ACCURACY, "vi", sigma_init=start) for start in starts]
    title, (low, high) = about(PAPERS_METHOD).title, (1e-3, 1e-2)

    def of_vi(start: float) -> Side:
        return results.side(ACCURACY, "vi", None, f"dense VI from {start:g}", sigma_init=start)

    return [
        is_better(
            f"from {min(starts):g} to {max(starts):g} the accuracy of {title} varies less than that of dense VI",
            span(title, ours), span("dense VI", dense), POINTS,
        ),
        is_better(f"dense VI is worse from {high:g} than from {low:g}", of_vi(low), of_vi(high), ACCURACY.of),
        is_better(
            f"{title} is more accurate than dense VI from {high:g}",
            results.side(ACCURACY, PAPERS_METHOD, ABLATED[0], sigma_init=high), of_vi(high), ACCURACY.of,
        ),
    ]  # fmt: skip


def removal(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """Which weights leave: the six criteria, and criterion 4 as printed, in float32."""
    verdicts = []
    for each in results:
        sides = _sides(each, "removal")
        others = [side for name, side in sides.items() if name not in (TWIN, TEXTBOOK, BEST)]
        verdicts += [
            is_best(f"criterion 4 ({BEST}) is more accurate than criteria 1, 3, 5 and 6", sides[BEST], others, ACCURACY.of),
            is_better(
                "criterion 4 as printed, in float32, is more accurate than criterion 2", sides[TEXTBOOK], sides[TWIN],
                ACCURACY.of,
            ),
        ]  # fmt: skip
    note = (
        "In exact arithmetic criteria 2 and 4 order the weights alike (docs/criteria.md), so criterion 2 is no rival of "
        "criterion 4 here. The curves are at the posterior mean, on validation images."
    )
    return Shown(tuple(verdicts), _tables(results), _over_training(results, "removal", but=(TEXTBOOK,)), (note,))


def addition(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """Which weights come in: the gradient of one sample, at the posterior mean, or averaged over several batches."""
    verdicts = []
    for each in results:
        by_criterion, by_steps = _sides(each, "addition"), _sides(each, "mc_steps")
        own = by_criterion.pop("sample")
        others = [side for steps, side in by_steps.items() if steps > 1]
        verdicts += [
            none_is_better("several batches (criterion 3) are not better than one", own, others, ACCURACY.of),
            none_is_better(
                "theta = mu (criterion 2) is not better than a sample", own, list(by_criterion.values()), ACCURACY.of
            ),
        ]
    plots = (*_over_training(results, "addition"), *_over_training(results, "mc_steps"))
    return Shown(tuple(verdicts), _tables(results), plots)


def fresh(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """With which sigma weights come in: the mean of the others, or a small number."""
    verdicts = []
    for each in results:
        sides = _sides(each, "fresh_sigma")
        own = sides.pop("mean")
        smallest = sides[min(sides)]
        verdicts += [
            none_is_better("no small number is better than the mean", own, list(sides.values()), ACCURACY.of),
            is_better("the mean is better than the smallest number", own, smallest, ACCURACY.of),
        ]
    return Shown(tuple(verdicts), _tables(results), _over_training(results, "fresh_sigma"))


def posteriors(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """Other mean-field families on the live weights."""
    verdicts = []
    for each in results:
        sides = _sides(each, "posterior")
        gaussian = sides.pop("gaussian")
        for name, side in sides.items():
            claim = f"{name} posteriors train as Gaussian ones do"
            verdicts.append(is_within(claim, "loss of accuracy", side, gaussian, WORKS, ACCURACY.of))
    return Shown(tuple(verdicts), _tables(results), _over_training(results, "posterior"))


def _sides(results: SetupResults, field: str) -> dict[Any, Side]:
    """The accuracy of the paper's method for each value of a setting."""
    return {
        value: results.side(ACCURACY, PAPERS_METHOD, ABLATED[0], f"{field} {value}", **{field: value})
        for value in _values(results, field)
    }


def _values(results: SetupResults, field: str) -> list[Any]:
    """The values that the runs have of a varied setting, in their order."""
    return list(dict.fromkeys(value for row in results.rows for name, value in row.varied if name == field))


def _tables(results: Sequence[SetupResults]) -> tuple[TitledTable, ...]:
    def label(row: Row) -> str:
        return row.label

    return tuple(TitledTable(each.words, metrics_table(each.rows, label, METRICS)) for each in results)


def _over_training(results: Sequence[SetupResults], field: str, but: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """Curves over the epochs, and the end of the training by value."""
    return (
        *sweep_cards.over_epochs(results, field, ("val_accuracy", "val_ece"), but),
        *sweep_cards.over(results, field, ("accuracy",), (), only=field),
    )
