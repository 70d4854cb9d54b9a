"""What the two estimators have in common: arguments, training, and the outputs of the network for each theta."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from ssvi.estimators import checks
from ssvi.estimators.errors import EstimatorError
from ssvi.estimators.examples import Batches, Examples
from ssvi.estimators.network import Module, check_output, dtype_of, plain_network
from ssvi.estimators.pace import default_epochs, to_the_end
from ssvi.estimators.progress import shown
from ssvi.estimators.randomness import seeded
from ssvi.estimators.trainer import Trainer
from ssvi.inference.predict import predict_samples
from ssvi.inference.watch import not_finite
from ssvi.likelihoods import Likelihood
from ssvi.nn.convert import to_bnn
from ssvi.nn.fit_batchnorm import fit_batchnorm
from ssvi.nn.theta_statistics import fitted

Array = NDArray[Any]

ROWS = 4096
"""Examples that go through the network at once in a prediction, so that memory is bounded."""
EXAMPLES_OF_BATCHNORM = 1000
"""Of a module with BatchNorm: the training examples that give the statistics for each theta."""


class NetworkEstimator(BaseEstimator, ABC):  # type: ignore[misc] # scikit-learn has no types
    """A sparse Bayesian network in scikit-learn's manner; `SSVIClassifier` and `SSVIRegressor` are its two kinds."""

    density: float
    hidden: Sequence[int]
    module: Module | None
    prior_sigma: float | None
    lr: float | None
    epochs: int | None
    batch_size: int
    samples: int
    every: int
    rate: float
    standardise: bool
    random_state: Any
    device: str
    verbose: int

    likelihood_: Likelihood
    bnn_: nn.Module

    def _check(self) -> torch.device:
        """Refuse arguments that cannot be used; the device, if all can."""
        checks.check_share("density", self.density, "0.5 keeps half of the weights")
        checks.check_share("rate", self.rate, "it is the share of live weights that the first update of gamma replaces")
        checks.check_hidden(self.hidden)
        checks.check_count("batch_size", self.batch_size, "it is the number of examples in a step")
        checks.check_count("samples", self.samples, "it is the number of draws of theta that a prediction averages")
        checks.check_count("every", self.every, "it is the number of steps between two updates of gamma")
        if self.epochs is not None:
            checks.check_count("epochs", self.epochs, "it is the number of passes; None chooses it by the data")
        for name in ("lr", "prior_sigma"):
            if getattr(self, name) is not None:
                checks.check_positive(name, getattr(self, name), "or None, the library's default")
        return checks.device_called(self.device)

    def _train(self, X: Array, y: Array, weight: Array | None) -> None:
        """Train a new network on standardised inputs and encoded targets."""
        device = self._check()
        self.seed_ = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.x_scaler_ = StandardScaler().fit(X, sample_weight=weight) if self.standardise else None
        with seeded(self.seed_, device):
            self.bnn_ = self._network(X, device)
            examples = self._examples(X, y, weight)
            self.n_iter_ = self.epochs or default_epochs(Batches(examples, self.batch_size, 1).per_epoch)
            batches = Batches(examples, self.batch_size, self.n_iter_)
            trainer = Trainer(
                self.bnn_, self.likelihood_, to_the_end(len(batches), self.every, self.rate),
                train_size=examples.size, lr=self.lr, every=self.every,
            )  # fmt: skip
            self._run(trainer, batches, examples.x)

    def _network(self, X: Array, device: torch.device) -> nn.Module:
        """The Bayesian network at its start."""
        net = plain_network(self.module, self.hidden, X.shape[1], self.likelihood_.outputs).to(device)
        check_output(net, self._inputs(X[:2], net), self.likelihood_.outputs)
        prior = "fan-in" if self.prior_sigma is None else float(self.prior_sigma)
        return to_bnn(self.likelihood_.prepare(net).to(device), self.density, prior_sigma=prior).train()

    def _run(self, trainer: Trainer, batches: Batches, inputs: Tensor) -> None:
        for batch in shown(batches, len(batches), self.verbose):
            trainer.step(batch)
        trainer.finish()
        if reason := not_finite(self.bnn_):
            raise EstimatorError(
                f"training diverged: {reason} Lower lr (the default is 0.3), and look at the columns of X"
            )
        fit_batchnorm(self.bnn_, [inputs[:EXAMPLES_OF_BATCHNORM]], self.samples)
        self.bnn_.eval()

    def _inputs(self, X: Array, net: nn.Module) -> Tensor:
        """Standardised inputs in the type and on the device of the network."""
        scaled = X if self.x_scaler_ is None else self.x_scaler_.transform(X)
        device = next((p.device for p in net.parameters()), torch.device("cpu"))
        return torch.as_tensor(np.ascontiguousarray(scaled)).to(device, dtype_of(net))

    def _examples(self, X: Array, y: Array, weight: Array | None) -> Examples:
        x = self._inputs(X, self.bnn_)
        targets = torch.as_tensor(np.ascontiguousarray(y)).to(x.device)
        if targets.is_floating_point():
            targets = targets.to(x.dtype)
        return Examples(x, targets, None if weight is None else torch.as_tensor(weight).to(x))

    def _outputs(self, X: Any) -> Tensor:
        """The outputs for each theta, (samples, n, outputs): the same thetas in every call."""
        X = validate_data(self, X, dtype=np.float64, reset=False)
        x = self._inputs(X, self.bnn_)
        return torch.cat([self._drawn(rows) for rows in x.split(ROWS)], 1).cpu()

    def _drawn(self, x: Tensor) -> Tensor:
        # numbered thetas of fit_batchnorm are the same in every call too, and need no generator
        generator = None if fitted(self.bnn_) else torch.Generator(x.device).manual_seed(self.seed_)
        drawn = predict_samples(self.bnn_, x, samples=self.samples, link="identity", generator=generator)
        assert isinstance(drawn, Tensor)
        return drawn


def counted(weight: Array, *columns: Array) -> Iterable[Array]:
    """The rows whose weight is not 0, of each column and of the weights: the others do not count at all."""
    if (weight < 0).any():
        raise EstimatorError(
            f"sample_weight has {weight.min()!r}: a weight is how many times an example counts, 0 or more"
        )
    if not (rows := weight > 0).any():
        raise EstimatorError("sample_weight is 0 everywhere: at least one example must count")
    return (column[rows] for column in (*columns, weight))
