"""How often a layer uses each of its weights for one example: what the count of multiplications needs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


def uses_per_example(layer: nn.Module, args: tuple[Any, ...], y: Any, outputs: int, examples: int) -> float:
    """The number of products of each weight with an input, for one of `examples` examples.

    A weight of a Linear or Conv, or of a layer that we do not know, is used at each position of y, which has `outputs`
    channels. A transposed convolution uses it at each position of x, a recurrent layer at each step, attention for each
    token (of the mean length of query, key and value). A table is only looked up.
    """
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return 0.0
    if isinstance(layer, nn.modules.conv._ConvTransposeNd):
        return _numbers(args[0]) / layer.in_channels / examples
    if isinstance(layer, (nn.RNNBase, nn.RNNCellBase)):
        return _numbers(args[0]) / layer.input_size / examples
    if isinstance(layer, nn.MultiheadAttention):
        widths = (layer.embed_dim, layer.kdim, layer.vdim)
        return sum(_numbers(x) / width for x, width in zip(args, widths, strict=False)) / len(args[:3]) / examples
    return _numbers(y) / outputs / examples


def _numbers(x: Any) -> int:
    """How many numbers a tensor, a packed sequence, or the first of several outputs has."""
    if isinstance(x, PackedSequence):
        return x.data.numel()
    return x.numel() if isinstance(x, Tensor) else _numbers(next(iter(x)))
