"""Which layers are followed by normalisation, read from the order in which a network registers its modules."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from ssvi.nn.conversion_rules import NORMALISATION
from ssvi.nn.kinds import kind_of


def followed_by_normalisation(net: nn.Module) -> set[nn.Module]:
    """The layers whose next module is a normalisation of as many features as the layer has outputs.

    "Next" is what the parent registers next; where that is a Sequential, its first module, and where the layer is the last
    module of a Sequential, what is next to the Sequential. Nothing is run, so this is a guess: it is wrong where `forward`
    uses the modules in another order, or where a sum or an activation comes between. In torch's TransformerEncoderLayer
    the second Linear counts as normalised, since norm1 is registered after it.
    """
    pairs = [(_end(a), _beginning(b)) for m in net.modules() for a, b in pairwise(m.children())]
    return {a for a, b in pairs if kind_of(a, {}) and _normalises(b, _outputs(a))}


def _outputs(layer: nn.Module) -> object:
    """The features that a layer gives, or None where it is not one of torch's layers with a weight."""
    if isinstance(layer, (nn.Linear, nn.Bilinear)):
        return layer.out_features
    if isinstance(layer, (nn.Embedding, nn.EmbeddingBag)):
        return layer.embedding_dim
    return layer.out_channels if isinstance(layer, nn.modules.conv._ConvNd) else None


def _end(module: nn.Module) -> nn.Module:
    """The last module inside a Sequential, also a nested one; any other module is itself."""
    return _end(module[-1]) if isinstance(module, nn.Sequential) and len(module) else module


def _beginning(module: nn.Module) -> nn.Module:
    """The first module inside a Sequential, also a nested one; any other module is itself."""
    return _beginning(module[0]) if isinstance(module, nn.Sequential) and len(module) else module


def _normalises(module: nn.Module, outputs: object) -> bool:
    """Whether it is a normalisation of so many features."""
    if not isinstance(module, NORMALISATION):
        return False
    if isinstance(module, nn.GroupNorm):
        return module.num_channels == outputs
    if isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
        return outputs in module.normalized_shape
    return module.num_features == outputs
