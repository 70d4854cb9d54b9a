"""The convolution that stands for a layer has the shapes that torch gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import ops

LAYERS = [
    nn.Conv2d(4, 6, 3, padding=1),
    nn.Conv2d(6, 9, (2, 3), stride=(3, 1), padding=(3, 0), dilation=(1, 2), groups=3),
    nn.Conv2d(2, 5, (5, 1), stride=(1, 2), padding=(2, 1)),
]


def geometry_of(layer: nn.Conv2d) -> Geometry:
    return Geometry(tuple(layer.weight.shape), layer.stride, layer.padding, layer.dilation, layer.groups)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_equals_a_layer_of_torch(layer: nn.Conv2d) -> None:
    conv = Convolution.of(geometry_of(layer))
    x = torch.randn(2, layer.in_channels, 11, 13)
    assert conv.out_shape(x.shape) == tuple(layer(x).shape)
    assert conv.channels == layer.in_channels
    assert conv.d == layer.weight.numel()
    assert (conv.kernel_h, conv.kernel_w) == layer.kernel_size
    assert (conv.stride_h, conv.stride_w) == layer.stride
    assert (conv.padding_h, conv.padding_w) == layer.padding
    assert (conv.dilation_h, conv.dilation_w) == layer.dilation


def test_a_linear_layer_is_a_convolution_on_one_pixel() -> None:
    conv = Convolution.of(Geometry((10, 12)))
    assert conv.out_shape((7, 12, 1, 1)) == (7, 10, 1, 1)
    assert conv.out_shape((7, 12)) == (7, 10)
    assert conv.is_matrix
    assert (conv.channels, conv.d, conv.groups) == (12, 120, 1)


@pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
def test_an_input_without_pixels_is_that_of_a_matrix_alone() -> None:
    index, theta, x = torch.arange(3, dtype=torch.int32), torch.randn(3), torch.randn(2, 4)
    for sizes in (((6, 4, 1, 1), (2, 1), (0, 0), (1, 1)), ((6, 4, 3, 3), (1, 1), (1, 1), (1, 1))):
        layer = Convolution.of(Geometry(*sizes))
        assert not layer.is_matrix
        with pytest.raises(ValueError, match=r"shape \(2, 4\) does not fit a layer of 4 channels"):
            ops.sparse_fixed(x, theta, index, None, layer)
    assert ops.sparse_fixed(x, theta, index, None, Convolution.of(Geometry((6, 4)))).shape == (2, 6)
