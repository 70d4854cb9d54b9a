"""What the two estimators have in common: arguments, training, and the outputs of the network for each theta."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from ssvi.estimators.arguments import check_arguments, device_called
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.examples import Array, Batches, Examples
from ssvi.estimators.network import Module, check_output, plain_network
from ssvi.estimators.outputs import drawn_outputs, tensor_for
from ssvi.estimators.pace import Pace, to_the_end, without_end
from ssvi.estimators.progress import shown
from ssvi.estimators.randomness import seeded
from ssvi.estimators.trainer import Trainer
from ssvi.inference.watch import not_finite
from ssvi.likelihoods import Likelihood
from ssvi.nn.convert import to_bnn
from ssvi.nn.fit_batchnorm import fit_batchnorm
from ssvi.training.length import default_epochs

EXAMPLES_OF_BATCHNORM = 1000
"""Of a module with BatchNorm: the training examples that give the statistics for each theta."""


class NetworkEstimator(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network in scikit-learn's manner; `SSVIClassifier` and `SSVIRegressor` are its two kinds."""

    likelihood_: Likelihood
    _training_state: Mapping[str, Any] | None

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

    def _start(self, X: Array, weight: Array | None) -> None:
        """A seed, the scale of the inputs, and a network that has learnt nothing yet."""
        check_arguments(self)
        self.seed_ = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.x_scaler_ = StandardScaler().fit(X, sample_weight=weight) if self.standardise else None
        self.n_examples_, self._training_state = 0.0, None
        device = device_called(self.device)
        with seeded(self.seed_, device):
            self.bnn_ = self._network(X, device)

    def _network(self, X: Array, device: torch.device) -> nn.Module:
        """The Bayesian network at its start."""
        outputs = self.likelihood_.outputs
        net = plain_network(self.module, self.hidden, X.shape[1], outputs).to(device)
        check_output(net, self._inputs(X[:2], net), outputs)
        prior = "fan-in" if self.prior_sigma is None else float(self.prior_sigma)
        prepared = self.likelihood_.prepare(net).to(tensor_for(net, np.empty(0)))  # a learnt noise is float32 at first
        return to_bnn(prepared, self.density, prior_sigma=prior)

    def _train_to_the_end(self, X: Array, y: Array, weight: Array | None) -> None:
        """All epochs, after which the learning rate is 0."""
        examples = self._examples(X, y, weight)
        self.n_iter_ = self.epochs or default_epochs(Batches(examples, self.batch_size, 1).per_epoch)
        batches = Batches(examples, self.batch_size, self.n_iter_)
        self._train(batches, to_the_end(len(batches), self.every, self.rate))

    def _train_on(self, X: Array, y: Array, weight: Array | None) -> None:
        """One more pass, after which others may follow."""
        self._train(Batches(self._examples(X, y, weight), self.batch_size, 1), without_end(self.rate))

    def _train(self, batches: Batches, pace: Pace) -> None:
        """Train the network from the state that it has. The random numbers of a step depend on the steps before it."""
        self.n_examples_ += batches.examples.size
        trainer = Trainer(self.bnn_.train(), self.likelihood_, pace, self.n_examples_, self.lr, self.every)
        if self._training_state is not None:
            trainer.load_state_dict(self._training_state)
        with seeded(self.seed_ + 1 + trainer.steps, batches.examples.x.device):
            for batch in shown(batches, len(batches), self.verbose):
                trainer.step(batch)
        self._training_state = trainer.finish()
        if reason := not_finite(self.bnn_):
            raise EstimatorError(f"training diverged: {reason} Lower lr, and look for very large numbers in X and y")
        fit_batchnorm(self.bnn_, [batches.examples.x[:EXAMPLES_OF_BATCHNORM]], self.samples)
        self.bnn_.eval()

    def _inputs(self, X: Array, net: nn.Module) -> Tensor:
        return tensor_for(net, X if self.x_scaler_ is None else self.x_scaler_.transform(X))

    def _examples(self, X: Array, y: Array, weight: Array | None) -> Examples:
        targets, weights = (None if column is None else tensor_for(self.bnn_, column) for column in (y, weight))
        assert targets is not None
        return Examples(self._inputs(X, self.bnn_), targets, weights)

    def _outputs(self, X: Any) -> Tensor:
        """The outputs for each theta, (samples, n, outputs), for inputs as the user has them."""
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return drawn_outputs(self.bnn_, self._inputs(X, self.bnn_), self.samples, self.seed_)
