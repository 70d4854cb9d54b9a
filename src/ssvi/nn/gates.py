"""Gates: one multiplier z_c for each channel, y_c <- z_c y_c. Structured methods remove channels by them.

A gate is at the output of a hidden layer, before the nonlinearity: on the BatchNorm that follows the layer, or on the
layer itself if there is none. For z >= 0, relu(z y) = z relu(y), so before or behind the ReLU makes no difference. A gate
before a BatchNorm in training mode would have no effect, because BatchNorm removes the scale of its input. In a residual
block the gate is on the branch and not on the sum: z = 0 removes the channel of the branch, and what the shortcut
carries stays.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ssvi.nn.conversion_rules import NORMALISATION
from ssvi.nn.kinds import is_linear_map
from ssvi.nn.layers import TWINS, LinearMap
from ssvi.nn.posterior import SparsePoint
from ssvi.nn.random_tensor import RandomTensor

Net = TypeVar("Net", bound=nn.Module)

NORMS = nn.modules.batchnorm._BatchNorm
"""The normalisation that a gate may stand behind: BatchNorm in 1, 2 or 3 dimensions."""


class Gate(RandomTensor, ABC):
    """The multipliers of one layer's channels. `alive` is the mask of the channels that are not removed.

    Every z that a gate gives (`mean`, `sample`, `draw`) is zero on removed channels. So a final class says what z is for
    all channels, `mean_of_all` and `draw_all`, and need not care which of them are removed.
    """

    alive: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("alive", torch.ones(channels, dtype=torch.bool))

    @property
    def channels(self) -> int:
        """The number of channels, removed or not."""
        return self.alive.numel()

    @property
    @abstractmethod
    def mean_of_all(self) -> Tensor:
        """E z of every channel, as if none were removed."""

    @abstractmethod
    def draw_all(self, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        """z ~ q for every channel, as if none were removed; `shape` is (channels,) or (examples, channels)."""

    @abstractmethod
    def kl(self) -> Tensor:
        """KL(q(z) || p(z)), summed over the channels that are not removed."""

    @property
    def mean(self) -> Tensor:
        """E z, and zero on removed channels."""
        return self.mean_of_all * self.alive

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """One z for each channel, zero on removed ones."""
        return self.draw_all((self.channels,), generator) * self.alive

    def opposite(self, theta: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw of its own: gates are not symmetric."""
        return self.sample(generator)

    def draw(self, examples: int) -> Tensor:
        """z for each example and channel, (examples, channels), as in training; zero on removed channels."""
        return self.draw_all((examples, self.channels)) * self.alive

    def close_below(self, threshold: float, score: Tensor) -> None:
        """Remove the channels with a score below the threshold, without return. The best channel always stays, because
        without any channel the network would be cut in two."""
        if torch.isnan(score).any():
            raise FloatingPointError("NaN among the parameters of a gate; nothing was removed. Lower the learning rate")
        score = score.masked_fill(~self.alive, -torch.inf)
        self.alive.copy_((score >= threshold) | (score == score.max()))

    def forward(self, y: Tensor) -> Tensor:
        """z y, with one z for each example, or with the z that is pinned."""
        z = self.draw(len(y)) if self.theta is None else self.theta.unsqueeze(0)
        return y * z.view(len(z), -1, *[1] * (y.dim() - 2))


def places(net: nn.Module) -> dict[str, int]:
    """Where gates belong: module name -> channels. Every Linear and Conv layer but the last, or its BatchNorm.

    Which BatchNorm follows a layer is read from the order in which the network registers its modules.
    """
    for name, module in net.named_modules():
        if isinstance(module, NORMALISATION) and not isinstance(module, NORMS):
            raise ValueError(
                f"{name} is a {type(module).__name__}, which undoes a gate or mixes its channel with others: "
                "gates need a network with BatchNorm or without normalisation"
            )
    affine = [(n, m) for n, m in net.named_modules() if is_linear_map(m) or isinstance(m, (NORMS, *TWINS.values()))]
    weighted = [i for i, (_, m) in enumerate(affine) if not isinstance(m, NORMS)]
    channels_at = {}
    for i in weighted[:-1]:
        name, layer = affine[i]
        following = affine[i + 1]
        channels = _channels(layer)
        normed = isinstance(following[1], NORMS) and following[1].num_features == channels
        channels_at[following[0] if normed else name] = channels
    return channels_at


def _channels(layer: nn.Module) -> int:
    out = layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels
    assert isinstance(out, int)
    return out


def gated(net: Net, make: Callable[[int], Gate]) -> Net:
    """A copy of `net` with a gate `make(channels)` at each place."""
    with_gates = copy.deepcopy(net)
    for name, channels in places(with_gates).items():
        put(with_gates.get_submodule(name), make(channels).to(next(with_gates.parameters())))
    return with_gates


def put(module: nn.Module, gate: Gate) -> None:
    """Put a gate on a module: from now on its output is multiplied by z."""
    module.gate = gate
    module.register_forward_hook(_through_gate)


def _through_gate(module: nn.Module, args: tuple[Any, ...], y: Tensor) -> Tensor:
    gate = module.gate
    assert isinstance(gate, Gate)
    if isinstance(module, nn.Linear):  # its channels are the last dimension, also of a sequence
        return gate(y.movedim(-1, 1)).movedim(1, -1)
    return gate(y)


def gates(net: nn.Module) -> Iterator[tuple[str, Gate]]:
    """Every gate with the name of the module that it is on, in the order of the network."""
    return ((name.removesuffix(".gate"), m) for name, m in net.named_modules() if isinstance(m, Gate))


@torch.no_grad()
def folded(net: Net) -> Net:
    """A copy without gates: the pinned or mean z of each is multiplied into the weight and bias of its module.

    The layers under a gate must be torch's own or sparse points: take `mean` of a network with Gaussian ones first.
    """
    plain = copy.deepcopy(net)
    for name, gate in gates(net):  # a copied gate is pinned nowhere, so z comes from the original
        module = plain.get_submodule(name)
        _multiply(name, module, gate.mean if gate.theta is None else gate.theta)
        _take_off(module)
    return plain


def _multiply(name: str, module: nn.Module, z: Tensor) -> None:
    """Multiply the weight and bias of each output channel by its z."""
    if isinstance(module, LinearMap):
        posterior = module.posterior
        if not isinstance(posterior, SparsePoint):
            raise ValueError(
                f"the weights of {name} are random, so a gate cannot be multiplied into them: fold ssvi.mean(net)"
            )
        posterior.mu.mul_(z[posterior.index.long() // (posterior.d // len(z))])
    elif isinstance(module.weight, nn.Parameter):
        module.weight.mul_(z.view(-1, *[1] * (module.weight.dim() - 1)))
    else:
        raise ValueError(f"{name} has no weight to multiply its gate into: make it with affine=True")
    if isinstance(module.bias, nn.Parameter):
        module.bias.mul_(z)


def _take_off(module: nn.Module) -> None:
    """Remove the gate of a module, and the hook that applied it."""
    del module._modules["gate"]
    for key, hook in list(module._forward_hooks.items()):
        if hook is _through_gate:
            del module._forward_hooks[key]
