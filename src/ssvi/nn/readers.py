"""Bayesian layers that read their weights: torch's own code runs on one theta per call."""

from __future__ import annotations

from abc import ABC
from typing import Any

from torch import Tensor, nn

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.one_theta import with_one_theta


class _Reader(BayesLayer, ABC):
    """A layer whose own `forward` runs with theta ~ q in place of some parameters.

    There is one theta for the whole batch in each call, and what the layer reads twice is the same. So a recurrent layer
    has one theta per sequence. theta is scattered into a dense tensor, and its gradient is gathered back.
    """

    @property
    def kernel(self) -> str:
        """The dense reference: torch's own operators on a dense theta."""
        return "dense"

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the torch layer computes, with one theta."""
        return with_one_theta(super().forward, *args, **kwargs)


class WeightReader(_Reader):
    """Attention, embeddings, bilinear layers, recurrent cells, standardised convolutions, and a user's own layers."""


class Recurrent(_Reader):
    """LSTM, GRU and RNN. torch's class keeps a list of its parameters, which here is made anew in each call."""

    _flat_weights_names: list[str]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The weights and biases in torch's order, the weights at the theta of this call."""
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor]) -> None:
        """torch sets its list when it has changed a parameter; here there is nothing to keep."""

    def _init_flat_weights(self) -> None:
        """torch calls it when the parameters have moved to another device; the list follows by itself."""

    def _update_flat_weights(self) -> None:
        """torch calls it in `forward`, in case a parameter was replaced; the list follows by itself."""

    def flatten_parameters(self) -> None:
        """Nothing: theta is a new tensor in each call, and cuDNN packs it then."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_flat_weight_refs"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__setstate__(self, state)
        self._flat_weight_refs: list[Any] = []
