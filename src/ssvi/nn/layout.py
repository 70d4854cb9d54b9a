"""How a parameter of a torch layer lies in its posterior, and which of its axes are outputs.

A posterior has the order of torch's own parameter, so that layers of different kinds can share one, with two exceptions.
The weight of Hugging Face's Conv1D is transposed, so that the kernels of a Linear serve. And the row of an embedding that
stands for padding is not random: torch does not train it, and a posterior has no place for it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

PADDING_ROW = "padding_row"
"""The buffer of an embedding that keeps the row of its padding."""


class Layout(ABC):
    """The map between a parameter and the tensor theta of its posterior, and the outputs of theta."""

    sums: ClassVar[bool]
    """Whether an output is a sum over many weights. A lookup is none: each of its outputs is one weight."""
    outputs: ClassVar[int]
    """The axis of theta along which the blocks of a structure lie: neighbouring outputs of the same inputs."""
    inputs: ClassVar[int]
    """The axis of theta along which N:M counts: neighbouring inputs of one output."""

    @abstractmethod
    def theta(self, parameter: Tensor) -> Tensor:
        """The tensor of the posterior, from the parameter of a torch layer."""

    @abstractmethod
    def parameter(self, layer: nn.Module, theta: Tensor) -> Tensor:
        """The parameter of the torch layer, from the tensor of the posterior."""

    @abstractmethod
    def by_output(self, theta: Tensor) -> Tensor:
        """theta in the order (outputs, inputs of an output, ...)."""

    def positions(self, by_output: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Sorted flat positions in theta, from flat positions in the order of `by_output`."""
        order = self.by_output(torch.arange(math.prod(shape)).view(shape)).flatten()
        return order[by_output].sort().values


class _InTorchOrder(Layout, ABC):
    """theta is the parameter."""

    def theta(self, parameter: Tensor) -> Tensor:
        """The parameter itself."""
        return parameter

    def parameter(self, layer: nn.Module, theta: Tensor) -> Tensor:
        """theta itself."""
        return theta


@dataclass(frozen=True)
class OutputsFirst(_InTorchOrder):
    """(outputs, inputs, ...): Linear, Conv, the gates of recurrent layers, the three projections of attention."""

    sums: ClassVar[bool] = True
    outputs: ClassVar[int] = 0
    inputs: ClassVar[int] = 1

    def by_output(self, theta: Tensor) -> Tensor:
        """theta itself."""
        return theta


OUTPUTS_FIRST = OutputsFirst()


@dataclass(frozen=True)
class InputsFirst(Layout):
    """A matrix (inputs, outputs) whose theta is the transposed one: Hugging Face's Conv1D."""

    sums: ClassVar[bool] = True
    outputs: ClassVar[int] = 0
    inputs: ClassVar[int] = 1

    def theta(self, parameter: Tensor) -> Tensor:
        """The parameter, transposed."""
        return parameter.T

    def parameter(self, layer: nn.Module, theta: Tensor) -> Tensor:
        """theta, transposed."""
        return theta.T

    def by_output(self, theta: Tensor) -> Tensor:
        """theta itself."""
        return theta


@dataclass(frozen=True)
class TransposedConvolution(_InTorchOrder):
    """(inputs, outputs / groups, *kernel): ConvTranspose, in torch's order, which is that of the convolution whose
    backward pass it is."""

    groups: int
    sums: ClassVar[bool] = True
    outputs: ClassVar[int] = 1
    inputs: ClassVar[int] = 0

    def by_output(self, theta: Tensor) -> Tensor:
        """(outputs, inputs / groups, *kernel): within each group the first two axes change places."""
        return theta.unflatten(0, (self.groups, -1)).transpose(1, 2).flatten(0, 1)


@dataclass(frozen=True)
class Rows(Layout):
    """A table (rows, features) of which a layer looks up rows: Embedding. Its units are the rows, so each starts alive.

    `padding` is the number of the row that is not random, or None.
    """

    padding: int | None = None
    sums: ClassVar[bool] = False
    outputs: ClassVar[int] = 1
    inputs: ClassVar[int] = 1

    def theta(self, parameter: Tensor) -> Tensor:
        """The table without the row of the padding."""
        if self.padding is None:
            return parameter
        return torch.cat([parameter[: self.padding], parameter[self.padding + 1 :]])

    def parameter(self, layer: nn.Module, theta: Tensor) -> Tensor:
        """The table with the row of the padding."""
        if self.padding is None:
            return theta
        row = layer.get_buffer(PADDING_ROW).to(theta.dtype).unsqueeze(0)
        return torch.cat([theta[: self.padding], row, theta[self.padding :]])

    def by_output(self, theta: Tensor) -> Tensor:
        """theta itself."""
        return theta


def keep_padding_row(layer: nn.Module, layout: Layout, parameter: Tensor) -> None:
    """Where a row is padding, the layer keeps it in a buffer."""
    if isinstance(layout, Rows) and layout.padding is not None:
        layer.register_buffer(PADDING_ROW, parameter[layout.padding].detach().clone())
