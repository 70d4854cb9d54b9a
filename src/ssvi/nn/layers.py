"""The Bayesian layers: torch's Linear and Conv1d-3d with a sparse posterior in place of the weight.

Conversion changes the class of a layer in a copied network and leaves the object itself where it is, so every reference
that the network has to it (a list, a hook, a partial) stays valid, and its stride, hooks, mode and other attributes are
kept. A Bayesian layer is an instance of torch's class too: some networks ask `isinstance(layer, nn.Linear)` in `forward`.
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
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior


class BayesLayer(nn.Module, ABC):
    """A linear map with random weights theta ~ q. It samples in training and in evaluation (`train()` and `eval()` are
    about BatchNorm), except where theta is pinned: inside `at_mean` and `at_sample`."""

    plain: ClassVar[type[nn.Module]]
    """The torch layer that this one was, and becomes again in `mean` and `sample`."""

    posterior: SparsePosterior
    bias: nn.Parameter | None

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The layer as a linear map, without its weights."""

    @abstractmethod
    def padded(self, x: Tensor) -> Tensor:
        """x with the padding that a kernel does not do itself."""

    def forward(self, x: Tensor) -> Tensor:
        """y = mu x + sqrt(sigma^2 x^2) eps: local reparameterisation (Eq. 4); or y = theta x where theta is pinned."""
        return self._watched_product(x) if self.posterior.listener is not None else self._product(self.padded(x))

    def _product(self, x: Tensor) -> Tensor:
        posterior, theta = self.posterior, self.posterior.theta
        if theta is None:
            return posterior.draw(x, self.geometry, self.bias)
        return kernels.fixed(x, theta, posterior.index, self.geometry, self.bias)

    # A compiler cannot handle hooks and Python objects, and an update needs only one batch in a hundred.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _watched_product(self, x: Tensor) -> Tensor:
        """`_product`, and the listener of an update of gamma is told of it."""
        x = self.padded(x)
        y = self._product(x)
        if self.posterior.listener is not None:
            self.posterior.listener.watch(x, y, self.geometry)
        return y

    @property
    def weight(self) -> Tensor:
        """A dense weight for code that reads `layer.weight` itself: a draw theta ~ q, or theta where it is pinned."""
        posterior, theta = self.posterior, self.posterior.theta
        weight = posterior.dense(posterior.sample() if theta is None else theta)
        if posterior.listener is not None:
            posterior.listener.watch_weight(weight)
        return weight

    @property
    def index(self) -> Tensor:
        """The set I: sorted flat positions of the live weights."""
        return self.posterior.index

    @property
    def mu(self) -> nn.Parameter:
        """The means of the live weights."""
        return self.posterior.mu

    @property
    def sigma(self) -> Tensor:
        """The standard deviations of the live weights."""
        return self.posterior.sigma

    @property
    def gamma(self) -> Tensor:
        """The mask of the live weights, of the shape of the dense weight."""
        return self.posterior.gamma

    @property
    def density(self) -> float:
        """The share s / d of the weights that are live."""
        return self.posterior.density

    def __repr__(self) -> str:
        """What the torch layer says of itself, and how sparse it is."""
        return f"{type(self).__name__}({self.plain.extra_repr(self)}, {self.posterior.extra_repr()})"


class Linear(BayesLayer, nn.Linear):  # type: ignore[misc, override]
    """torch.nn.Linear with a sparse posterior in place of its weight."""

    plain = nn.Linear
    in_features: int
    out_features: int

    @property
    def geometry(self) -> Geometry:
        """A matrix: no kernel, so no stride, padding or dilation."""
        return Geometry((self.out_features, self.in_features))

    def padded(self, x: Tensor) -> Tensor:
        """x itself: a fully connected layer does not pad."""
        return x


class _Conv(BayesLayer, ABC):
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
    def _pads_first(self) -> bool:
        """Whether the padding is not zeros, or not the same on both sides, so that `padded` has to do it."""
        sides = self._reversed_padding_repeated_twice
        return self.padding_mode != "zeros" or sides[::2] != sides[1::2]

    @property
    def geometry(self) -> Geometry:
        """A convolution with symmetric zero padding; none where `padded` has padded."""
        sides = self._reversed_padding_repeated_twice
        padding = (0,) * len(self.stride) if self._pads_first else tuple(sides[::2][::-1])
        return Geometry(self.posterior.shape, self.stride, padding, self.dilation, self.groups)

    def padded(self, x: Tensor) -> Tensor:
        """Reflect, replicate, circular and one-sided padding, as torch does it."""
        if not self._pads_first:
            return x
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return F.pad(x, self._reversed_padding_repeated_twice, mode=mode)


class Conv1d(_Conv, nn.Conv1d):  # type: ignore[misc, override]
    """torch.nn.Conv1d with a sparse posterior in place of its weight."""

    plain = nn.Conv1d


class Conv2d(_Conv, nn.Conv2d):  # type: ignore[misc, override]
    """torch.nn.Conv2d with a sparse posterior in place of its weight."""

    plain = nn.Conv2d


class Conv3d(_Conv, nn.Conv3d):  # type: ignore[misc, override]
    """torch.nn.Conv3d with a sparse posterior in place of its weight."""

    plain = nn.Conv3d


TWINS: dict[type[nn.Module], type[BayesLayer]] = {layer.plain: layer for layer in (Linear, Conv1d, Conv2d, Conv3d)}
"""The Bayesian twin of each torch layer that can be converted."""


def layers(bnn: nn.Module) -> Iterator[tuple[str, BayesLayer]]:
    """Name and layer of every Bayesian layer, in the order of the network; a layer that is used twice comes once."""
    return ((name, m) for name, m in bnn.named_modules() if isinstance(m, BayesLayer))


def posteriors(bnn: nn.Module) -> dict[str, SparsePosterior]:
    """Every posterior once, under the name of the first layer that uses it (tied layers share one)."""
    names: dict[SparsePosterior, str] = {}
    for name, layer in layers(bnn):
        names.setdefault(layer.posterior, name)
    if not names:
        raise ValueError("bnn has no Bayesian layer: convert your network with ssvi.to_bnn(net, density=...) first")
    return {name: posterior for posterior, name in names.items()}


def gaussians(bnn: nn.Module) -> dict[str, SparseGaussian]:
    """The posteriors that spread, by name; those of sparse points do not."""
    return {name: p for name, p in posteriors(bnn).items() if isinstance(p, SparseGaussian)}


def kl(bnn: nn.Module) -> Tensor:
    """KL(q || p) of the whole network, summed over its live weights; differentiable."""
    return torch.stack([posterior.kl() for posterior in posteriors(bnn).values()]).sum()
