"""Who takes part: our estimator with its defaults at several densities, plain training, and an ensemble of five."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

import ssvi
from small.regression import WithNoise, gaussian_nll
from small.task import Examples
from small.training import Batches
from ssvi.estimators.pace import default_epochs
from ssvi.likelihoods import Gaussian, NumberPrediction
from tabular.stacked import started, train_stacked, tune_stacked

HIDDEN = (50,)
"""The network of the literature: one hidden layer of 50 units."""
BATCH = 32
"""Of plain training. Ours has the default of the estimator, 128."""
SAMPLES = 50
"""Draws of theta that a prediction of ours averages."""
MEMBERS = 5

Predict = Callable[[torch.Tensor], NumberPrediction]
"""x -> the prediction of y, both in the units of the data."""


@dataclass(frozen=True)
class Entrant:
    """One training, and the rows of the table that come from it, each with its own prediction."""

    names: tuple[str, ...]
    fit: Callable[[Examples, int], Sequence[Predict]]
    """(training examples, seed) -> a prediction for each name."""


def entrants(densities: Sequence[float]) -> list[Entrant]:
    """All of them, in the order of the table."""
    ours = [Entrant((f"SSVI, density {d:g}",), partial(_fit_ours, density=d)) for d in densities]
    return [*ours, Entrant(("plain training", f"ensemble of {MEMBERS}"), _fit_plain)]


def _fit_ours(train: Examples, seed: int, density: float) -> Sequence[Predict]:
    """`SSVIRegressor` with its defaults, which have the network of the literature."""
    regressor = ssvi.SSVIRegressor(density=density, samples=SAMPLES, random_state=seed)
    assert tuple(regressor.hidden) == HIDDEN
    regressor.fit(train.x.numpy(), train.y.numpy())
    return [lambda x: regressor.predict_distribution(x.numpy())]


def _fit_plain(train: Examples, seed: int) -> Sequence[Predict]:
    """Plain training by Adam, tuned on a fifth of the training examples; the ensemble has five starts of it."""
    x_mean, x_std, y_mean, y_std = _moments(train)
    scaled = Examples(((train.x - x_mean) / x_std).float(), ((train.y - y_mean) / y_std).float())
    network = partial(_network, train.x.shape[1])
    epochs = default_epochs(max(1, len(train) // BATCH))
    chosen = tune_stacked(network, gaussian_nll, scaled, BATCH, epochs, seed)
    nets = [started(network, 1000 * seed + member) for member in range(MEMBERS)]
    trained = train_stacked(nets, gaussian_nll, Batches(scaled, BATCH, epochs), [chosen] * MEMBERS)

    def predict(x: torch.Tensor, members: int) -> NumberPrediction:
        outputs = trained(((x - x_mean) / x_std).float())[:members]
        return Gaussian().predictive(outputs).scaled(float(y_std), float(y_mean))

    return [partial(predict, members=1), partial(predict, members=MEMBERS)]


def _network(inputs: int) -> nn.Module:
    return WithNoise(nn.Sequential(nn.Linear(inputs, HIDDEN[0]), nn.ReLU(), nn.Linear(HIDDEN[0], 1)))


def _moments(train: Examples) -> tuple[torch.Tensor, ...]:
    """Mean and standard deviation of the inputs and of the targets; a constant column has nothing to scale."""
    x_std, y_std = (values.std(0, correction=0) for values in (train.x, train.y))
    return train.x.mean(0), torch.where(x_std > 0, x_std, 1.0), train.y.mean(), y_std


def scores(prediction: NumberPrediction, y: torch.Tensor) -> dict[str, float]:
    """RMSE, log-likelihood of the mixture, and the share of the targets in the 90 % interval."""
    low, high = prediction.interval(0.9)
    log_likelihood = float(prediction.log_prob(y).mean())
    return {
        "rmse": float((prediction.mean - y).square().mean().sqrt()),
        "log_likelihood": log_likelihood if math.isfinite(log_likelihood) else -np.inf,
        "coverage": float(((low <= y) & (y <= high)).double().mean()),
    }
