"""The Bayesian layers that are linear maps: torch's Linear and Conv1d-3d, and Hugging Face's Conv1D.

With Gaussian weights each element of y has noise of its own (local reparameterisation). The kernels of `ssvi.kernels` serve.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.hidden import hidden_from_compiler
from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.layout import InputsFirst, Layout
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread


class LinearMap(BayesLayer, ABC):
    """y = theta * x + bias with theta ~ q."""

    bias: nn.Parameter | None

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The layer as a linear map, without its weights."""

    @abstractmethod
    def padded(self, x: Tensor) -> Tensor:
        """x with the padding that a kernel does not do itself."""

    @property
    def kernel(self) -> str:
        """The kernel of `ssvi.kernels` that serves."""
        return kernels.chosen(self.posterior.mu, self.geometry, self.posterior.s)

    def mapped(self, x: Tensor, geometry: Geometry) -> Tensor:
        """y = theta x: by local reparameterisation (Eq. 4), with one theta ~ q for the call, or with one that is pinned."""
        posterior = self.posterior  # once: a module takes half a microsecond to find a child
        if posterior.listener is not None:
            return self._watched_product(x, geometry)
        return posterior.product(self.padded(x), geometry, self.bias)

    # A compiler cannot handle hooks and Python objects, and an update needs only one batch in a hundred.
    @hidden_from_compiler
    def _watched_product(self, x: Tensor, geometry: Geometry) -> Tensor:
        """The product, and the listener of an update of gamma is told of it."""
        x = self.padded(x)
        y = self.posterior.product(x, geometry, self.bias)
        if self.posterior.listener is not None:
            self.posterior.listener.watch(x, y, geometry)
        return y

    @property
    def weight(self) -> Tensor:
        """A dense weight for code that reads `layer.weight` itself: a draw theta ~ q, or theta where it is pinned."""
        return self.read("weight")


class _Matrix(LinearMap, ABC):
    """What the fully connected layers share."""

    @property
    def geometry(self) -> Geometry:
        """A matrix: no kernel, so no stride, padding or dilation."""
        return Geometry(self.posterior.shape)

    def padded(self, x: Tensor) -> Tensor:
        """x itself: a fully connected layer does not pad."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        """y = theta x + bias, with noise of its own for each element of y."""
        return self.mapped(x, self.geometry)


class Linear(_Matrix, nn.Linear):  # type: ignore[misc, override]
    """torch.nn.Linear with a sparse posterior in place of its weight."""

    plain = nn.Linear
    in_features: int
    out_features: int


class InputsFirstLinear(_Matrix):
    """A Linear whose weight is (inputs, outputs), as Hugging Face's Conv1D; its posterior holds (outputs, inputs)."""

    layout: ClassVar[Layout] = InputsFirst()


class _Conv(LinearMap, ABC):
    """What the three convolutions share; the attributes are those of torch's own layer."""

    stride: tuple[int, ...]
    padding: tuple[int, ...] | Literal["same", "valid"]
    dilation: tuple[int, ...]
    kernel_size: tuple[int, ...]
    groups: int
    padding_mode: str
    transposed: bool
    output_padding: tuple[int, ...]
    _reversed_padding_repeated_twice: list[int]

    @property
    def pads_first(self) -> bool:
        """Whether the padding is not zeros, or not the same on both sides, so that `padded` has to do it."""
        sides = self._reversed_padding_repeated_twice
        return self.padding_mode != "zeros" or sides[::2] != sides[1::2]

    @property
    def geometry(self) -> Geometry:
        """A convolution with symmetric zero padding; none where `padded` has padded."""
        sides, p = self._reversed_padding_repeated_twice, self.posterior
        padding = (0,) * len(self.stride) if self.pads_first else tuple(sides[::2][::-1])
        return Geometry(p.shape, self.stride, padding, self.dilation, self.groups)

    def padded(self, x: Tensor) -> Tensor:
        """Reflect, replicate, circular and one-sided padding, as torch does it."""
        if not self.pads_first:
            return x
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return F.pad(x, self._reversed_padding_repeated_twice, mode=mode)

    def forward(self, x: Tensor) -> Tensor:
        """y = theta * x + bias, with noise of its own for each element of y."""
        return self.mapped(x, self.geometry)


class Conv1d(_Conv, nn.Conv1d):  # type: ignore[misc, override]
    """torch.nn.Conv1d with a sparse posterior in place of its weight."""

    plain = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):  # type: ignore[misc, override]
    """torch.nn.Conv2d with a sparse posterior in place of its weight."""

    plain = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):  # type: ignore[misc, override]
    """torch.nn.Conv3d with a sparse posterior in place of its weight."""

    plain = nn.Conv3d


TWINS: dict[type[nn.Module], type[LinearMap]] = {layer.plain: layer for layer in (Linear, Conv1d, Conv2d, Conv3d)}
"""The Bayesian twin of torch's Linear and of each of its convolutions."""


def layers(bnn: nn.Module) -> Iterator[tuple[str, BayesLayer]]:
    """Name and layer of every Bayesian layer, in the order of the network; a layer that is used twice comes once."""
    if not isinstance(bnn, nn.Module):
        raise TypeError(
            f"bnn is a {type(bnn).__name__} and not a network: pass the network itself, as ssvi.to_bnn gives it, and not "
            "its parameters"
        )
    return ((name, m) for name, m in bnn.named_modules() if isinstance(m, BayesLayer))


def posterior_uses(bnn: nn.Module) -> Iterator[tuple[str, SparsePosterior]]:
    """Name and posterior of every random parameter. A posterior that layers share comes once for each of them.

    The name is that of the layer for its `weight`, and that of the parameter, such as "lstm.weight_hh_l0", for others.
    """
    for name, layer in layers(bnn):
        for parameter, posterior in layer.posteriors.items():
            yield use_name(name, parameter), posterior


def use_name(layer: str, parameter: str) -> str:
    """The name of a random parameter: that of its layer if it is the weight."""
    return layer if parameter == "weight" else f"{layer}.{parameter}".removeprefix(".")


def posteriors(bnn: nn.Module) -> dict[str, SparsePosterior]:
    """Every posterior once, under the name of its first use (tied layers share one)."""
    names: dict[SparsePosterior, str] = {}
    for name, posterior in posterior_uses(bnn):
        names.setdefault(posterior, name)
    if not names:
        raise ValueError("bnn has no Bayesian layer: convert your network with ssvi.to_bnn(net, density=...) first")
    return {name: posterior for posterior, name in names.items()}


def gaussians(bnn: nn.Module) -> dict[str, SparseGaussian]:
    """The Gaussian posteriors by name."""
    return {name: p for name, p in posteriors(bnn).items() if isinstance(p, SparseGaussian)}


def spread_posteriors(bnn: nn.Module) -> dict[str, SparseSpread]:
    """The posteriors of all families by name; sparse points do not spread."""
    return {name: p for name, p in posteriors(bnn).items() if isinstance(p, SparseSpread)}


def kl(bnn: nn.Module) -> Tensor:
    """KL(q || p) of the whole network, summed over its live weights; differentiable."""
    return torch.stack([posterior.kl() for posterior in posteriors(bnn).values()]).sum()
