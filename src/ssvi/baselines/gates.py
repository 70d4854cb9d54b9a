"""Gates: one multiplier z_c for each channel, y_c <- z_c y_c. What structured methods learn, or draw, or switch.

A gate sits where a hidden layer's channels are complete and before their nonlinearity: on the normalisation that follows
the layer, or on the layer itself. Since z >= 0 and relu(z y) = z relu(y), it may as well be thought of behind the ReLU.
A gate before a BatchNorm in training mode would do nothing, for it would be normalised away. In a residual block it is
on the branch and not on the sum: a closed gate takes the branch's channel away, not what the shortcut carries.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ssvi.held import Held
from ssvi.nn import TWINS, BayesLayer

Net = TypeVar("Net", bound=nn.Module)

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Gate(Held):
    """The multipliers of one layer's channels. `alive` says which channels are not removed for good."""

    alive: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("alive", torch.ones(channels, dtype=torch.bool))

    @property
    def channels(self) -> int:
        """How many there are."""
        return self.alive.numel()

    def draw(self, examples: int) -> Tensor:
        """z for each example and channel, as in training, (examples, channels) or (1, channels)."""
        raise NotImplementedError

    def kl(self) -> Tensor:
        """KL(q(z) || p(z)), summed over the channels."""
        raise NotImplementedError

    def forward(self, y: Tensor) -> Tensor:
        """z y, with a z for each example; or with the z that is held."""
        z = self.draw(len(y)) if self.theta is None else self.theta.unsqueeze(0)
        return y * (z * self.alive).view(len(z), -1, *[1] * (y.dim() - 2))


def places(net: nn.Module) -> dict[str, int]:
    """Where gates belong: module name -> channels. Every Linear and Conv layer but the last, or its BatchNorm.

    Which BatchNorm follows a layer is read from the order in which the network registers its modules.
    """
    affine = [(n, m) for n, m in net.named_modules() if type(m) in TWINS or isinstance(m, (*NORMS, BayesLayer))]
    weighted = [i for i, (_, m) in enumerate(affine) if not isinstance(m, NORMS)]
    found = {}
    for i in weighted[:-1]:
        name, layer = affine[i]
        following = affine[i + 1]
        channels = _channels(layer)
        normed = isinstance(following[1], NORMS) and following[1].num_features == channels
        found[following[0] if normed else name] = channels
    return found


def _channels(layer: nn.Module) -> int:
    out = layer.out_features if isinstance(layer, nn.Linear) else layer.out_channels
    assert isinstance(out, int)
    return out


def gated(net: Net, make: Callable[[int], Gate]) -> Net:
    """A copy of `net` with a gate `make(channels)` at each place."""
    made = copy.deepcopy(net)
    for name, channels in places(made).items():
        module = made.get_submodule(name)
        module.gate = make(channels)
        module.register_forward_hook(_through_gate)
    return made


def _through_gate(module: nn.Module, args: tuple[Any, ...], y: Tensor) -> Tensor:
    gate = module.gate
    assert isinstance(gate, Gate)
    return gate(y)


def gates(net: nn.Module) -> Iterator[tuple[str, Gate]]:
    """Name of the module and gate, in the order of the network."""
    return ((name.removesuffix(".gate"), m) for name, m in net.named_modules() if isinstance(m, Gate))


@torch.no_grad()
def folded(net: Net) -> Net:
    """A copy without gates, each one's held or mean value multiplied into the weight and bias of its module."""
    made = copy.deepcopy(net)
    for (name, gate), (_, copied) in zip(gates(net), list(gates(made)), strict=True):
        module = made.get_submodule(name)
        z = (gate.center if gate.theta is None else gate.theta) * gate.alive
        for parameter in (module.weight, module.bias):
            if isinstance(parameter, nn.Parameter):
                parameter.mul_(z.view(-1, *[1] * (parameter.dim() - 1)))
        _take_off(module, copied)
    return made


def _take_off(module: nn.Module, gate: Gate) -> None:
    assert module._modules["gate"] is gate
    del module._modules["gate"]
    for key, hook in list(module._forward_hooks.items()):
        if hook is _through_gate:
            del module._forward_hooks[key]


@torch.no_grad()
def live(net: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """For each Linear and Conv layer the mask of the weights that the output can depend on, for inputs like `x`.

    A weight is dead if it is zero, or if it belongs to a removed channel: then everything that feeds it or that it feeds
    is multiplied by zero. To see which are, every weight that is not zero is set to one and every bias to zero: all is
    positive now, nothing can cancel and no ReLU can close, so the gradient of the output says it.
    """
    ones = copy.deepcopy(net).double().eval()
    weights = {name: m.weight for name, m in ones.named_modules() if type(m) in TWINS}
    for module in ones.modules():
        _to_ones(module)
    with torch.enable_grad():
        y = ones(torch.ones_like(x[:1], dtype=torch.float64)).sum()
        gradients = torch.autograd.grad(y, list(weights.values()), allow_unused=True)
    return {
        name: torch.zeros_like(w, dtype=torch.bool) if g is None else (g != 0) & (w != 0)
        for (name, w), g in zip(weights.items(), gradients, strict=True)
    }


def _to_ones(module: nn.Module) -> None:
    """The module with positive weights of one, no bias, and statistics that change nothing."""
    if type(module) in TWINS or isinstance(module, NORMS):
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            tensor = getattr(module, name, None)
            if isinstance(tensor, Tensor):
                tensor.copy_((tensor != 0) * value if name == "weight" else torch.full_like(tensor, value))
    elif isinstance(module, Gate):
        module.held = module.alive.double()
