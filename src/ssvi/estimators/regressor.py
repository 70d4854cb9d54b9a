"""Numbers: `SSVIRegressor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ssvi.estimators.base import NetworkEstimator
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.examples import Array, counted_rows
from ssvi.estimators.network import Module
from ssvi.likelihoods import Gaussian, NumberLikelihood, NumberPrediction


class SSVIRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network that predicts numbers with their uncertainty.

        regressor = SSVIRegressor(density=0.5, random_state=0).fit(X, y)
        mean, std = regressor.predict(X_new, return_std=True)
        low, high = regressor.predict_interval(X_new, level=0.9)

    Args:
        density: live weights / all weights, in (0, 1]; 1 is a dense Bayesian network.
        hidden: the units of each hidden layer of the default network, an MLP with ReLUs.
        module: your own network in its place, which is copied and not changed; or a function (inputs, outputs) -> network.
        noise: of y given the network: "learnt", one number for each target; "predicted" by the network for each example,
            which then has two outputs for each target; or the known standard deviation, in the units of y.
        likelihood: another distribution in place of the Gaussian, `ssvi.likelihoods.StudentT()` where there are outliers;
            its own noise counts then, and not `noise`.
        prior_sigma: the prior of a weight is N(0, prior_sigma^2); None: what the live weights per output ask for.
        lr: of `ssvi.IVON`; None is 0.1.
        epochs: passes over the data; None: about 4,000 steps, but at least 20 passes and at most 2,000.
        batch_size: examples in a step.
        samples: draws of the weights that a prediction averages. They are the same in every prediction.
        every: steps between two updates of the support.
        rate: the share of live weights that the first update replaces.
        standardise: scale the columns of X, and y, to mean 0 and variance 1 for the network; predictions are in the units
            of y all the same.
        random_state: a number makes every `fit` the same; torch's global random numbers are never touched.
        device: of torch.
        verbose: 1 shows a progress bar.

    Attributes:
        bnn_: the trained network, for `ssvi.summary`, `ssvi.save` and all else; it takes standardised inputs.
        likelihood_: what its outputs mean, on the scale of the standardised y.
        n_examples_: the examples that it has learnt from; those with weights count as often as these say.
    """

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
        batch_size: int = 128,
        samples: int = 20,
        every: int = 20,
        rate: float = 0.3,
        standardise: bool = True,
        random_state: Any = None,
        device: str = "cpu",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            density=density, hidden=hidden, module=module, prior_sigma=prior_sigma, lr=lr, epochs=epochs,
            batch_size=batch_size, samples=samples, every=every, rate=rate, standardise=standardise,
            random_state=random_state, device=device, verbose=verbose,
        )  # fmt: skip
        self.noise = noise
        self.likelihood = likelihood

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SSVIRegressor:
        """Train a new network on X, (n, columns), and y, (n,) or (n, targets). An example counts `sample_weight` times."""
        X, y, weight = self._validated(X, y, sample_weight, first=True)
        self._set_scale(y, weight)
        self._start(X, weight)
        self._train_to_the_end(X, self._scaled(y), weight)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SSVIRegressor:
        """Train on with one pass over these examples.

        It is continued training, and not an exact update of the posterior: the examples stand for all that were given so
        far, so those of earlier calls are forgotten slowly. The number of examples in the bound grows with every call.
        The first call sets the scales of the inputs and of y, so its examples should be typical.
        """
        first = not hasattr(self, "bnn_")
        X, y, weight = self._validated(X, y, sample_weight, first)
        if first:
            self._set_scale(y, weight)
            self._start(X, weight)
        self._train_on(X, self._scaled(y), weight)
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

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean of log p(y|x), in the units of y: higher is better, and errors cost more where it was certain."""
        check_consistent_length(X, y, sample_weight)
        prediction = self.predict_distribution(X)
        values = torch.as_tensor(self._columns(np.asarray(y, dtype=np.float64)))
        logs = prediction.log_prob(values.reshape(prediction.mean.shape))
        return float(np.average(logs.numpy(), weights=sample_weight))

    def _validated(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Array, Array, Array | None]:
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=first)
        return counted_rows(X, np.asarray(y, dtype=np.float64), sample_weight)

    def _set_scale(self, y: Array, weight: Array | None) -> None:
        """What y looks like: its number of targets, their scales, and so the likelihood."""
        self.target_shape_ = y.shape[1:]
        columns = self._columns(y)
        self.y_scaler_ = StandardScaler().fit(columns, sample_weight=weight) if self.standardise else None
        self.likelihood_ = self._likelihood(columns.shape[1])

    def _columns(self, y: Array) -> Array:
        """y as (n, targets)."""
        if y.shape[1:] != self.target_shape_:
            expected = ("n", *self.target_shape_)
            raise EstimatorError(f"y has shape {y.shape}, but it was {expected} in fit: give as many targets")
        return y.reshape(len(y), -1)

    def _scaled(self, y: Array) -> Array:
        """The targets of the network, (n,) or (n, targets)."""
        columns = self._columns(y)
        scaled = columns if self.y_scaler_ is None else self.y_scaler_.transform(columns)
        return scaled[:, 0] if scaled.shape[1] == 1 else scaled

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
