"""One evaluation for every network: a loader in, the outputs, the numbers and their intervals out."""

from __future__ import annotations

from functools import partial
from typing import overload

import torch
from torch import Tensor, nn

from ssvi.inference.class_quality import HEADLINE, RESAMPLES, Evaluation, Interval, Outputs, Quality
from ssvi.inference.loaders import LABELS, Batch, Loader, drawn_over
from ssvi.inference.number_quality import NumberEvaluation, NumberOutputs, NumberQuality
from ssvi.inference.predict import draw_outputs, draw_probabilities
from ssvi.likelihoods import (
    Bernoulli,
    Categorical,
    ClassPrediction,
    Likelihood,
    LikelihoodError,
    NumberLikelihood,
    NumberPrediction,
    Prediction,
    YesNoPrediction,
)
from ssvi.likelihoods.checks import checked_answers, checked_classes, checked_numbers

__all__ = [
    "HEADLINE",
    "LABELS",
    "RESAMPLES",
    "Batch",
    "Evaluation",
    "Interval",
    "Loader",
    "NumberEvaluation",
    "NumberOutputs",
    "NumberQuality",
    "Outputs",
    "Quality",
    "collect",
    "collect_outputs",
    "evaluate",
    "evaluate_numbers",
    "evaluate_outputs",
]


def collect(net: nn.Module, loader: Loader, samples: int = 5, seed: int = 0) -> Outputs:
    """Run a classifier over a loader, in eval mode; afterwards it is in the mode that it was in before."""
    return Outputs(*drawn_over(net, loader, partial(draw_probabilities, samples=samples, seed=seed)))


def collect_outputs(net: nn.Module, loader: Loader, samples: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The outputs of a network as they are, (samples, n, outputs), and the targets: for `Likelihood.predictive`."""
    return drawn_over(net, loader, partial(draw_outputs, samples=samples, seed=seed))


@overload
def evaluate(
    net: nn.Module, loader: Loader, samples: int = 5, *, seed: int = 0,
    likelihood: Categorical | Bernoulli | None = None,
) -> Evaluation: ...  # fmt: skip
@overload
def evaluate(
    net: nn.Module, loader: Loader, samples: int = 5, *, seed: int = 0, likelihood: NumberLikelihood,
    scale: float | Tensor = 1.0, shift: float | Tensor = 0.0,
) -> NumberEvaluation: ...  # fmt: skip
@overload
def evaluate(
    net: nn.Module, loader: Loader, samples: int = 5, *, seed: int = 0, likelihood: Likelihood | None,
    scale: float | Tensor = 1.0, shift: float | Tensor = 0.0,
) -> Evaluation | NumberEvaluation: ...  # fmt: skip


def evaluate(
    net: nn.Module,
    loader: Loader,
    samples: int = 5,
    *,
    seed: int = 0,
    likelihood: Likelihood | None = None,
    scale: float | Tensor = 1.0,
    shift: float | Tensor = 0.0,
) -> Evaluation | NumberEvaluation:
    """Evaluate a Bayesian network with `samples` draws of theta, or a deterministic one with its one output.

    A batch is (x, y), with several inputs (x_1, x_2, ..., y), or a dict with "labels" and the inputs by name (Hugging Face):
    then the network is called as net(**inputs), and `logits` of its output are taken.

    Inside `with ssvi.at_mean(net):` the posterior mean is evaluated. The network is evaluated in eval mode; afterwards
    it is in the mode that it was in before. The global random number generator is not used.

    Args:
        net: a network; a mixture of networks has one sample of each.
        loader: the batches.
        samples: the number of draws of theta.
        seed: of the draws; the same seed gives the same networks for every batch and every data set.
        likelihood: what the outputs mean. Without one they are the logits of classes. `Gaussian` or `StudentT` give a
            `NumberEvaluation`; `Bernoulli` of one question is evaluated as two classes.
        scale: the unit of a standardised target, one for all numbers or one for each target: network and loader have
            (number - shift) / scale. The evaluation is in the units of the data.
        shift: see scale.
    """
    if likelihood is None:
        _refuse_units(scale, shift)
        return Evaluation(collect(net, loader, samples, seed))
    drawn, y = collect_outputs(net, loader, samples, seed)
    prediction = likelihood.predictive(drawn)
    if isinstance(prediction, NumberPrediction):
        return evaluate_numbers(prediction, y, scale, shift)
    _refuse_units(scale, shift)
    return Evaluation(_classes(prediction, y))


def evaluate_outputs(outputs: Outputs) -> Evaluation:
    """The evaluation of outputs that were collected before."""
    return Evaluation(outputs)


def evaluate_numbers(
    prediction: NumberPrediction, y: Tensor, scale: float | Tensor = 1.0, shift: float | Tensor = 0.0
) -> NumberEvaluation:
    """The evaluation of numbers that were predicted before, in the units of scale * number + shift."""
    y = checked_numbers(y, tuple(prediction.mean.shape)).double()
    return NumberEvaluation(NumberOutputs(prediction.scaled(scale, shift), y * scale + shift))


def _classes(prediction: Prediction, y: Tensor) -> Outputs:
    """The probabilities of classes; no and yes are the classes 0 and 1."""
    if isinstance(prediction, ClassPrediction):
        return Outputs(prediction.drawn, checked_classes(y, (len(prediction),), prediction.drawn.shape[2]))
    if isinstance(prediction, YesNoPrediction) and prediction.logits.dim() == 2:
        return Outputs(prediction.drawn, checked_answers(y, (len(prediction),)).long())
    raise LikelihoodError(f"{prediction!r} cannot be evaluated: evaluate each question by itself, by Bernoulli()")


def _refuse_units(scale: float | Tensor, shift: float | Tensor) -> None:
    if bool((torch.as_tensor(scale) != 1).any()) or bool((torch.as_tensor(shift) != 0).any()):
        raise LikelihoodError(
            f"scale={scale!r}, shift={shift!r}: classes have no unit; give likelihood=Gaussian() for numbers"
        )
