"""Numbers: `SSVIRegressor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ssvi.estimators.base import Array, NetworkEstimator, counted
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.network import Module
from ssvi.likelihoods import Gaussian, NumberLikelihood, NumberPrediction


class SSVIRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network that predicts numbers with their uncertainty."""

    def __init__(
        self,
        *,
        density: float = 0.5,
        hidden: Sequence[int] = (50,),
        module: Module | None = None,
        noise: float | str = "learnt",
        likelihood: NumberLikelihood | None = None,
        prior_sigma: float | None = None,
        lr: float | None = None,
        epochs: int | None = None,
        batch_size: int = 32,
        samples: int = 20,
        every: int = 20,
        rate: float = 0.3,
        standardise: bool = True,
        random_state: Any = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        self.density = density
        self.hidden = hidden
        self.module = module
        self.noise = noise
        self.likelihood = likelihood
        self.prior_sigma = prior_sigma
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.samples = samples
        self.every = every
        self.rate = rate
        self.standardise = standardise
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SSVIRegressor:
        """Train a new network on X, (n, columns), and y, (n,) or (n, targets). An example counts `sample_weight` times."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weight = None
        if sample_weight is not None:
            X, y, weight = counted(_check_sample_weight(sample_weight, X), X, y)
        self.target_shape_ = y.shape[1:]
        targets = y.reshape(len(y), -1)
        self.y_scaler_ = StandardScaler().fit(targets, sample_weight=weight) if self.standardise else None
        self.likelihood_ = self._likelihood(targets.shape[1])
        scaled = targets if self.y_scaler_ is None else self.y_scaler_.transform(targets)
        self._train(X, scaled[:, 0] if scaled.shape[1] == 1 else scaled, weight)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """The mean of p(y|x); with `return_std` its standard deviation too, of noise and model together."""
        prediction = self.predict_distribution(X)
        mean = self._as_targets(prediction.mean)
        return (mean, self._as_targets(prediction.std)) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """The two ends of the central interval that has y with probability `level`."""
        low, high = self.predict_distribution(X).interval(level)
        return self._as_targets(low), self._as_targets(high)

    def predict_distribution(self, X: Any) -> NumberPrediction:
        """p(y|x) in the units of y: a mixture over the draws of theta, with quantiles, noise and model variance."""
        check_is_fitted(self)
        prediction = self.likelihood_.predictive(self._outputs(X))
        assert isinstance(prediction, NumberPrediction)
        if self.y_scaler_ is None:
            return prediction
        factor, shift = (torch.as_tensor(part) for part in (self.y_scaler_.scale_, self.y_scaler_.mean_))
        return prediction.scaled(factor, shift)  # one number for each target, or one for all examples

    def log_likelihood(self, X: Any, y: Any) -> float:
        """The mean of log p(y|x), in the units of y."""
        y = torch.as_tensor(np.asarray(y, dtype=np.float64))
        prediction = self.predict_distribution(X)
        return float(prediction.log_prob(y.reshape(prediction.mean.shape)).mean())

    def _likelihood(self, targets: int) -> NumberLikelihood:
        """What was given, or a Gaussian; a noise that is known is in the units of y, and standardised like y."""
        given = Gaussian(noise=self.noise) if self.likelihood is None else self.likelihood
        if not isinstance(given, NumberLikelihood):
            raise EstimatorError(
                f"likelihood={given!r} is not one of numbers: take Gaussian or StudentT of ssvi.likelihoods"
            )
        if isinstance(given.noise, str) or self.y_scaler_ is None:
            return replace(given, targets=targets)
        if targets > 1:
            raise EstimatorError(
                f"noise={given.noise!r} for {targets} targets, which have different units: standardise y yourself and give "
                "standardise=False, or let the noise be 'learnt'"
            )
        return replace(given, noise=float(given.noise / self.y_scaler_.scale_[0]))

    def _as_targets(self, values: torch.Tensor) -> Array:
        return values.numpy().reshape(len(values), *self.target_shape_)
