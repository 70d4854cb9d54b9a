"""Classes: `SSVIClassifier`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ssvi.estimators.base import Array, NetworkEstimator, counted
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.network import Module
from ssvi.likelihoods import Categorical, ClassPrediction


class Uncertainty(NamedTuple):
    """How uncertain each prediction is, in nats."""

    entropy: Array
    """All of it: the entropy of p(y|x)."""
    mutual_information: Array
    """The part that comes from not knowing the weights: more data could remove it."""


class SSVIClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network that predicts the probabilities of classes."""

    def __init__(
        self,
        *,
        density: float = 0.5,
        hidden: Sequence[int] = (50,),
        module: Module | None = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SSVIClassifier:
        """Train a new network on X, (n, columns), and the classes y, (n,). An example counts `sample_weight` times."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weight = None
        if sample_weight is not None:
            X, y, weight = counted(_check_sample_weight(sample_weight, X), X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise EstimatorError(
                f"y has one class, {self.classes_[0]!r}: a classifier needs examples of two classes or more"
            )
        self.likelihood_ = Categorical(len(self.classes_))
        self._train(X, codes.astype(np.int64), weight)
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each example."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """p(y|x) of each class, (n, classes), in the order of `classes_`: the average over `samples` draws of theta."""
        return self.predict_distribution(X).probs.numpy()

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Entropy and mutual information of each prediction."""
        prediction = self.predict_distribution(X)
        return Uncertainty(prediction.entropy.numpy(), prediction.mutual_information.numpy())

    def predict_distribution(self, X: Any) -> ClassPrediction:
        """p(y|x, theta) of each draw of theta, as `ssvi.likelihoods` has it."""
        check_is_fitted(self)
        prediction = self.likelihood_.predictive(self._outputs(X).double())
        assert isinstance(prediction, ClassPrediction)
        return prediction

    def log_likelihood(self, X: Any, y: Any) -> float:
        """The mean of log p(y|x)."""
        prediction = self.predict_distribution(X)
        codes = np.searchsorted(self.classes_, y)
        return float(prediction.log_prob(torch.as_tensor(codes)).mean())
