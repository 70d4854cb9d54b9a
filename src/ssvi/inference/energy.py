"""The loss of a sampler: the energy of the posterior, per training example."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from ssvi.inference.elbo import Terms, check_is_mean, check_train_size


class Energy(ABC):
    """loss = U / N = nll + penalty / N, with U = N nll + penalty the energy and penalty = -log prior, up to a constant.

    `train_size` is N, the number of training examples; `nll` is the mean negative log-likelihood of a batch.
    """

    def __init__(self, train_size: int) -> None:
        check_train_size(train_size)
        self.train_size = train_size
        self._last: tuple[Tensor, Tensor] | None = None

    @abstractmethod
    def penalty(self) -> Tensor:
        """U - N nll, a number with gradients to the weights."""

    def __call__(self, nll: Tensor) -> Tensor:
        """U / N for a batch whose mean negative log-likelihood is `nll`."""
        check_is_mean(nll)
        penalty = self.penalty()
        self._last = nll.detach(), penalty.detach()
        return nll + penalty / self.train_size

    @property
    def terms(self) -> Terms:
        """NLL and penalty of the last call; the penalty stands in the place of the KL, and beta is 1."""
        if self._last is None:
            raise RuntimeError(f"{type(self).__name__}.terms: there was no call yet; compute a loss first")
        nll, penalty = self._last
        return Terms(nll.item(), penalty.item(), 1.0)
