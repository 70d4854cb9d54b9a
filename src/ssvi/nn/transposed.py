"""The Bayesian transposed convolution: the backward pass of a convolution, in whose order its weights are."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from ssvi.kernels.geometry import Geometry
from ssvi.nn.layers import LinearMap


class ConvTranspose(LinearMap):
    """ConvTranspose1d-3d; the attributes are those of torch's own layer."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    kernel_size: tuple[int, ...]
    groups: int

    @property
    def geometry(self) -> Geometry:
        """A transposed convolution with the layer's own `output_padding`."""
        shape = self.posterior.shape
        return Geometry(shape, self.stride, self.padding, self.dilation, self.groups, self.output_padding)

    def padded(self, x: Tensor) -> Tensor:
        """x itself: torch allows zero padding alone here."""
        return x

    def forward(self, x: Tensor, output_size: list[int] | None = None) -> Tensor:
        """y = theta * x + bias, with noise of its own for each element of y, of torch's `output_size` if it is given."""
        sizes = (self.stride, self.padding, self.kernel_size, len(self.stride), self.dilation)
        padding = nn.modules.conv._ConvTransposeNd._output_padding(self, x, output_size, *sizes)  # type: ignore[arg-type]
        return self.mapped(x, replace(self.geometry, output_padding=tuple(padding)))
