"""`ssvi evaluate`: how good the predictions on the test images are, and what the network costs."""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi import metrics
from ssvi.data import Batches
from ssvi.evaluation.cost import cost
from ssvi.evaluation.finished_run import FinishedRun, Track, quiet
from ssvi.evaluation.promises import DEFAULT, DecisionSettings, evaluate_costs, evaluate_decisions, validation_outputs
from ssvi.evaluation.results import Estimate, HardImages, ImageAnswer, Reliability, RiskCoverage, RunEvaluation
from ssvi.inference.evaluate import HEADLINE, Evaluation, NumberEvaluation, Outputs, collect, evaluate_outputs
from ssvi.inference.predict import Mixture, networks
from ssvi.nn.at_theta import at_mean
from ssvi.nn.random_tensor import is_random

CURVE = 100
"""Points of the risk-coverage curve that are stored."""

SHOWN = 12
"""Images of each kind that the report shows."""


def evaluate_run(
    run: FinishedRun, samples: int = 5, seed: int = 0, track: Track = quiet, settings: DecisionSettings = DEFAULT
) -> RunEvaluation:
    """Everything that `evaluation.json` holds; `settings` say which decisions are asked for."""
    test, validation = run.batches(run.test), validation_outputs(run, samples, seed, track)
    return evaluate_classes(run, test, validation, samples, seed, track, settings)


def evaluate_classes(
    run: FinishedRun, test: Batches, validation: Outputs | None, samples: int, seed: int, track: Track,
    settings: DecisionSettings, things: str = "images",
) -> RunEvaluation:  # fmt: skip
    """The quality of predicted classes on these batches, which are images or rows; `things` names them in the bar."""
    outputs = collect(run.net, track(test, f"test {things}"), samples, seed)
    evaluation = evaluate_outputs(outputs)
    return RunEvaluation(
        data=run.recipe.data,
        examples=evaluation.examples,
        samples=evaluation.samples,
        seed=seed,
        asked=samples,
        metrics=with_intervals(evaluation),
        point=point_of(run),
        at_mean=_at_mean(run, test, evaluation, track),
        entropy=evaluation.entropy,
        mutual_information=evaluation.mutual_information,
        cost=cost(run, samples),
        reliability=_reliability(outputs),
        risk_coverage=_risk_coverage(outputs),
        images=HardImages(uncertain=_most_uncertain(outputs), wrong=_most_confidently_wrong(outputs)),
        decisions=None if validation is None else evaluate_decisions(validation, outputs, settings),
        action_costs=None if settings.costs is None else evaluate_costs(outputs, settings.costs),
    )


def point_of(run: FinishedRun) -> str:
    """Which single network stands beside the samples."""
    return "last network" if isinstance(run.net, Mixture) else "posterior mean"


def with_intervals(evaluation: Evaluation | NumberEvaluation) -> dict[str, Estimate]:
    """Each headline number with its 95 % interval."""
    return {name: Estimate(getattr(evaluation, name), *ends) for name, ends in evaluation.intervals.items()}


def _at_mean(run: FinishedRun, test: Batches, evaluation: Evaluation, track: Track) -> dict[str, float]:
    """The same numbers with theta = mu, of a mixture those of its last network; a deterministic one has only these."""
    last = networks(run.net)[-1]
    if last is not run.net or is_random(last):
        with at_mean(last):
            evaluation = evaluate_outputs(collect(last, track(test, point_of(run)), 1))
    return {name: getattr(evaluation, name) for name in HEADLINE}


def _reliability(outputs: Outputs) -> Reliability:
    bins = metrics.reliability(outputs.probs, outputs.labels)
    return Reliability(bins.count.tolist(), _means(bins.confidence), _means(bins.accuracy))


def _means(values: Tensor) -> list[float | None]:
    """The mean of each bin; that of an empty bin is NaN, which JSON does not know, and becomes None."""
    return [None if value != value else value for value in values.tolist()]


def _risk_coverage(outputs: Outputs) -> RiskCoverage:
    coverage, risk = metrics.risk_coverage(outputs.probs, outputs.labels)
    n = len(coverage)
    points = torch.linspace(0, n - 1, min(n, CURVE), dtype=torch.float64).round().long()
    return RiskCoverage(coverage[points].tolist(), risk[points].tolist())


def _most_uncertain(outputs: Outputs) -> list[ImageAnswer]:
    order = outputs.entropy.argsort(descending=True, stable=True)
    return [_image(outputs, i) for i in order[:SHOWN].tolist()]


def _most_confidently_wrong(outputs: Outputs) -> list[ImageAnswer]:
    confidence, guess = outputs.probs.max(1)
    wrong = (guess != outputs.labels).nonzero().flatten()
    order = wrong[confidence[wrong].argsort(descending=True, stable=True)]
    return [_image(outputs, i) for i in order[:SHOWN].tolist()]


def _image(outputs: Outputs, i: int) -> ImageAnswer:
    confidence, guess = outputs.probs[i].max(0)
    return ImageAnswer(
        index=i,
        label=int(outputs.labels[i]),
        guess=int(guess),
        probability=float(confidence),
        entropy=float(outputs.entropy[i]),
        mutual_information=float(outputs.model_uncertainty[i]),
    )
