"""A sparse weight: the set of its live positions, and one number mu for each of them. All posteriors share this."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from ssvi import kernels
from ssvi.kernels.geometry import Geometry
from ssvi.nn.random_tensor import RandomTensor
from ssvi.nn.sharded import whole, write
from ssvi.structures.units import Single, Units


class Listener(Protocol):
    """What an update of gamma attaches to a posterior, to learn dl/dtheta at all d positions, live or not.

    The layers tell it about every use of theta. It registers its own hooks for the backward pass.
    """

    def watch(self, x: Tensor, y: Tensor, geometry: Geometry) -> None:
        """A layer has computed y = theta * x. With x and the dl/dy of the backward pass, dl/dtheta is known."""

    def watch_weight(self, weight: Tensor) -> None:
        """A layer has given its dense weight to other code. The gradient of that tensor is dl/dtheta."""


class SparsePosterior(RandomTensor, ABC):
    """A distribution of one weight tensor that is exactly zero off its support.

    `index` holds the set I as s sorted flat positions, `mu` the mean of each live weight. Nothing of the size d of the
    dense weight is stored. The final classes say how theta spreads about mu.
    """

    index: Tensor
    listener: Listener | None
    """Attached for the batches that an update of gamma needs, otherwise None."""
    follows: bool = False
    """Whether this is an average of another posterior, whose support it follows (`Subspace.follow`)."""
    units: Units
    """The structure of the support, which every update of gamma keeps."""
    distribution: str = ""
    """What `print` and `summary` say of q on the live weights, where it is neither Gaussian nor a point."""

    def __init__(
        self, shape: tuple[int, ...], index: Tensor, mu: Tensor, units: Units | None = None, **at_rest: object
    ) -> None:
        super().__init__(listener=None, follows=False, trains_at_mean=False, **at_rest)
        self.shape, self.units = shape, units or Single()
        self.register_buffer("index", index.to(torch.int32))
        self.mu = nn.Parameter(mu)

    @property
    def d(self) -> int:
        """The number of weights of the dense layer."""
        return math.prod(self.shape)

    @property
    def s(self) -> int:
        """The number of live weights, ||gamma||_1."""
        return self.index.numel()

    @property
    def density(self) -> float:
        """The share s / d of the weights that are live."""
        return self.s / self.d

    @property
    @abstractmethod
    def sigma(self) -> Tensor:
        """The standard deviations of the live weights."""

    @abstractmethod
    def kl(self) -> Tensor:
        """KL(q || p), summed over the live weights."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """Whether `draw` gives each element of y noise of its own, at the price of a second product."""

    @abstractmethod
    def draw(self, x: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        """y = theta * x + bias with theta ~ q: its own theta for each element of y if `is_local`, else one for all."""

    def product(self, x: Tensor, geometry: Geometry, bias: Tensor | None) -> Tensor:
        """y = theta * x + bias with the theta that is pinned, or by `draw` where none is."""
        theta = self.theta
        if theta is None:
            return self.draw(x, geometry, bias)
        return kernels.fixed(x, theta, self.index, geometry, bias)

    @abstractmethod
    def start_fresh(self, fresh: Tensor, sigma: float) -> None:
        """Give the weights at the places `fresh` (a mask), whose parameters are 0 now, the spread `sigma`."""

    @property
    def gamma(self) -> Tensor:
        """The mask of the support, of the shape of the dense weight."""
        mask = torch.zeros(self.d, dtype=torch.bool, device=self.index.device)
        mask[self.index.long()] = True
        return mask.view(self.shape)

    @property
    def mean(self) -> Tensor:
        """E[theta] = mu, on the live weights."""
        return self.mu

    def opposite(self, theta: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """2 mu - theta: every family is symmetric about mu."""
        return 2 * whole(self.mu) - theta

    def per_weight(self) -> Iterable[nn.Parameter]:
        """The parameters, each with one number per live weight."""
        return self.parameters()

    def dense(self, values: Tensor) -> Tensor:
        """The dense weight that has these values on the support, and zeros elsewhere."""
        return values.new_zeros(self.d).index_put((self.index.long(),), values).view(self.shape)

    @torch.no_grad()
    def move_to(self, index: Tensor, fresh_sigma: float) -> Tensor:
        """Change the support to `index` (sorted, as long as the old one) in place.

        Returns `source`: where each new weight stood among the old ones, -1 for a fresh one. Weights that stay keep their
        parameters to the bit; fresh ones start at mu = 0 and sigma = fresh_sigma (`Initialize` of Algorithm 1).
        """
        index = index.to(self.index.dtype)
        place = torch.searchsorted(self.index, index).clamp_max_(self.s - 1)
        fresh = self.index[place] != index
        source = place.masked_fill(fresh, -1)
        for parameter in self.per_weight():
            realign(parameter, source)
        self.start_fresh(fresh, fresh_sigma)
        self.index.copy_(index)
        return source

    @torch.no_grad()
    def restrict_to(self, keep: Tensor) -> None:
        """Forget all live weights but those at the places `keep` (increasing) of `index`: pruning.

        The parameters stay the same objects, so an optimiser goes on holding them. What is left has no structure.
        """
        for parameter in self.per_weight():
            parameter.grad = None
            parameter.data = parameter.data[keep].clone()
        self.index = self.index[keep].clone()
        self.units = Single()

    @torch.no_grad()
    def make_room(self, s: int) -> None:
        """Have s live weights, whose values and positions are loaded next; until then they are 0.

        The parameters stay the same objects, so an optimiser goes on holding them.
        """
        for parameter in self.per_weight():
            parameter.grad = None
            parameter.data = parameter.data.new_zeros(s)
        self.index = self.index.new_zeros(s)

    def extra_repr(self) -> str:
        """What `print(bnn)` says of it: s of d, the density, and the structure and the family if they are not the usual."""
        return ", ".join(filter(None, [f"s={self.s}/{self.d}, {self.density:.1%}", str(self.units), self.distribution]))


@torch.no_grad()
def realign(values: Tensor, source: Tensor, fresh: float = 0.0) -> None:
    """values[j] <- values[source[j]] in place, and `fresh` where source is -1."""
    moved = whole(values)[source.clamp_min(0)]
    write(values, moved.masked_fill_(source < 0, fresh))
