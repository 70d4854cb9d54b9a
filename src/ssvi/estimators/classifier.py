"""Classes: `SSVIClassifier`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ssvi.estimators.base import NetworkEstimator
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.examples import Array, counted_rows
from ssvi.likelihoods import Categorical, ClassPrediction


class Uncertainty(NamedTuple):
    """How uncertain each prediction is, in nats, (n,)."""

    entropy: Array
    """All of it: the entropy of p(y|x)."""
    mutual_information: Array
    """The part that comes from not knowing the weights: more data could remove it."""


class SSVIClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network that predicts the probabilities of classes.

        classifier = SSVIClassifier(density=0.5, random_state=0).fit(X, y)
        probabilities = classifier.predict_proba(X_new)

    Args:
        density: live weights / all weights, in (0, 1]; 1 is a dense Bayesian network.
        hidden: the units of each hidden layer of the default network, an MLP with ReLUs.
        module: your own network in its place, which is copied and not changed; or a function (inputs, outputs) -> network.
        prior_sigma: the prior of a weight is N(0, prior_sigma^2); None: what the live weights per output ask for.
        lr: of `ssvi.IVON`; None is 0.1.
        epochs: passes over the data; None: about 4,000 steps, but at least 20 passes and at most 2,000.
        batch_size: examples in a step.
        samples: draws of the weights that a prediction averages. They are the same in every prediction.
        every: steps between two updates of the support.
        rate: the share of live weights that the first update replaces.
        standardise: scale the columns of X to mean 0 and variance 1 for the network.
        random_state: a number makes every `fit` the same; torch's global random numbers are never touched.
        device: of torch.
        verbose: 1 shows a progress bar.

    Attributes:
        bnn_: the trained network, for `ssvi.summary`, `ssvi.save` and all else; it takes standardised inputs.
        classes_: the classes, in the order of the columns of `predict_proba`.
        n_examples_: the examples that it has learnt from; those with weights count as often as these say.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SSVIClassifier:
        """Train a new network on X, (n, columns), and the classes y, (n,). An example counts `sample_weight` times."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        X, y, weight = counted_rows(X, y, sample_weight)
        self._set_classes(y)
        self._start(X, weight)
        self._train_to_the_end(X, self._codes(y), weight)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SSVIClassifier:
        """Train on with one pass over these examples.

        It is continued training, and not an exact update of the posterior: the examples stand for all that were given so
        far, so those of earlier calls are forgotten slowly. The number of examples in the bound grows with every call.
        The first call sets the scale of the inputs, and needs all `classes`; after a `fit` there is no first call.
        """
        first = not hasattr(self, "bnn_")
        X, y = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(y)
        X, y, weight = counted_rows(X, y, sample_weight)
        if first and classes is None:
            raise EstimatorError("classes=None in the first call of partial_fit: give all classes that will ever come")
        if first:
            self._set_classes(column_or_1d(classes))
            self._codes(y)
            self._start(X, weight)
        self._train_on(X, self._codes(y), weight)
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
        """p(y|x, theta) for each draw of theta, as `ssvi.likelihoods` has it."""
        check_is_fitted(self)
        prediction = self.likelihood_.predictive(self._outputs(X).double())
        assert isinstance(prediction, ClassPrediction)
        return prediction

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean of log p(y|x): higher is better, and a wrong prediction costs more the more certain it was."""
        check_consistent_length(X, y, sample_weight)
        prediction = self.predict_distribution(X)
        logs = prediction.log_prob(torch.as_tensor(self._codes(column_or_1d(y))))
        return float(np.average(logs.numpy(), weights=sample_weight))

    def _set_classes(self, y: Array) -> None:
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise EstimatorError(
                f"y has one class, {self.classes_.tolist()[0]!r}: a classifier needs examples of two or more"
            )
        self.likelihood_ = Categorical(len(self.classes_))

    def _codes(self, y: Array) -> Array:
        """The number of each label in `classes_`."""
        if len(unknown := np.setdiff1d(y, self.classes_)):
            raise EstimatorError(
                f"y has the class {unknown.tolist()[0]!r}, which is not in classes_: fit again with examples of it"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)
