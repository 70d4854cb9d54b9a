"""What all likelihoods have in common: p(y | output), and the average of it over theta."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn

from ssvi.errors import UserError


class LikelihoodError(UserError, ValueError):
    """Outputs or targets that do not fit the likelihood; the message names the shapes and the remedy."""


class Prediction(ABC):
    """p(y|x) = 1/S sum_s p(y|x, theta_s) for n examples: a mixture over the samples of theta."""

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """log p(y|x), (n,): the logarithm of the average, not the average of logarithms."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of examples."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """The number of samples of theta."""

    @abstractmethod
    def summary(self) -> str:
        """What is predicted, in a few words."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(examples={len(self)}, samples={self.samples}, {self.summary()})"


class Likelihood(ABC):
    """p(y | output of the network), the same for every example. It has no state and no parameters."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many outputs the plain network must have."""

    @abstractmethod
    def prepare(self, net: nn.Module) -> nn.Module:
        """The network with what the likelihood needs besides its outputs; most need nothing and return `net` itself.

        Prepare a plain network before `to_bnn`.
        """

    @abstractmethod
    def log_density(self, output: Tensor, y: Tensor) -> Tensor:
        """log p(y | output) of each example, (..., n), for the outputs of a prepared network, (..., n, outputs)."""

    @abstractmethod
    def predictive(self, outputs: Tensor) -> Prediction:
        """p(y|x) from the outputs for each theta, (samples, n, outputs)."""

    def nll(self, output: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """The mean of -log p(y | output) over a batch: the loss. Each example counts `weight` times, if it is given.

        The mean is over the number of examples and not over the sum of their weights: then the sum over all batches is
        that of the whole training set, whatever the batches. The `train_size` of `IVON` or `ELBO` is the number of
        examples, and weights should be 1 on average.
        """
        losses = -self.log_density(output, y)
        if weight is None:
            return losses.mean()
        if weight.shape != losses.shape[-1:]:
            raise LikelihoodError(
                f"weight has shape {tuple(weight.shape)}, but there are {losses.shape[-1]} examples: give one for each"
            )
        return (weight * losses).mean()


def drawn_outputs(outputs: Tensor) -> Tensor:
    """Outputs for each theta, (samples, n, outputs); those of one batch without the first axis are refused."""
    if outputs.dim() != 3:
        raise LikelihoodError(
            f"outputs has shape {tuple(outputs.shape)}, not (samples, examples, outputs): outputs[None] for one theta"
        )
    return outputs
