"""Which layers can become Bayesian, and how. Layers of other packages are known by their name and never imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import nn
from torch.nn.utils.parametrize import is_parametrized

from ssvi.nn.classes import Kind
from ssvi.nn.layers import TWINS, InputsFirstLinear
from ssvi.nn.layout import OUTPUTS_FIRST, InputsFirst, Rows, TransposedConvolution
from ssvi.nn.readers import Recurrent, WeightReader
from ssvi.nn.transposed import ConvTranspose

OwnLayers = Mapping[type[nn.Module], Sequence[str]]
"""A user's own layers: the names of the parameters that become random, by class."""

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)
_TABLES = (nn.Embedding, nn.EmbeddingBag)
_READ: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Bilinear: ("weight",),
    nn.LSTMCell: ("weight_ih", "weight_hh"),
    nn.GRUCell: ("weight_ih", "weight_hh"),
    nn.RNNCell: ("weight_ih", "weight_hh"),
    nn.MultiheadAttention: ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"),
}
_KNOWN = (*TWINS, *_TRANSPOSED, *_RECURRENT, *_TABLES, *_READ)

_WEIGHT = Kind(WeightReader, ("weight",), OUTPUTS_FIRST)
_STANDARDISED = Kind(WeightReader, ("weight",), OUTPUTS_FIRST, scale_free=True)
_OF_OTHERS = {
    "transformers.pytorch_utils.Conv1D": Kind(InputsFirstLinear, ("weight",), InputsFirst()),
    "transformers.models.whisper.modeling_whisper.WhisperPositionalEmbedding": Kind(WeightReader, ("weight",), Rows()),
    "timm.layers.conv2d_same.Conv2dSame": _WEIGHT,
    "timm.layers.linear.Linear": _WEIGHT,
    "timm.layers.std_conv.StdConv2d": _STANDARDISED,
    "timm.layers.std_conv.StdConv2dSame": _STANDARDISED,
    "timm.layers.std_conv.ScaledStdConv2d": _STANDARDISED,
    "timm.layers.std_conv.ScaledStdConv2dSame": _STANDARDISED,
}
"""Layers of other packages, by module and class."""

_COMPUTE = {"forward", "_conv_forward", "__call__", "__getattr__", "__getattribute__"}
"""A subclass that defines one of these may compute something else than its base."""


def kind_of(layer: nn.Module, own: OwnLayers) -> Kind | None:
    """How this layer becomes Bayesian, or None if it cannot."""
    for known in type(layer).__mro__:
        if known in own:
            return Kind(WeightReader, tuple(own[known]), OUTPUTS_FIRST)
    if is_parametrized(layer):
        return None
    kind = type(layer)
    if of_other := _OF_OTHERS.get(f"{kind.__module__}.{kind.__qualname__}"):
        return of_other
    base = computes_like(kind)
    return None if base is None else _kind_of_torch(layer, base)


def computes_like(kind: type[nn.Module]) -> type[nn.Module] | None:
    """The layer of torch that computes what this class computes: itself, or one that it changes only at construction."""
    for i, base in enumerate(kind.__mro__):
        if base in _KNOWN:
            return None if any(_COMPUTE & vars(below).keys() for below in kind.__mro__[:i]) else base
    return None


def is_linear_map(layer: nn.Module) -> bool:
    """Whether it computes what torch's Linear or Conv1d-3d compute."""
    return computes_like(type(layer)) in TWINS and not is_parametrized(layer)


def _kind_of_torch(layer: nn.Module, base: type[nn.Module]) -> Kind:
    if base in _TRANSPOSED:
        assert isinstance(layer, _TRANSPOSED)
        return Kind(ConvTranspose, ("weight",), TransposedConvolution(layer.groups))
    if base in TWINS:
        return Kind(TWINS[base], ("weight",), OUTPUTS_FIRST)
    if base in _TABLES:
        assert isinstance(layer, _TABLES)
        return Kind(WeightReader, ("weight",), Rows(layer.padding_idx))
    if base in _RECURRENT:
        names = [name for name in layer._parameters if name.startswith("weight")]
        return Kind(Recurrent, tuple(names), OUTPUTS_FIRST)
    names = [name for name in _READ[base] if layer._parameters.get(name, name) is not None]
    return Kind(WeightReader, tuple(names), OUTPUTS_FIRST)


def check_own(net: nn.Module, own: OwnLayers) -> None:
    """Every class of `own` is in the network, and has parameters of those names."""
    for kind, names in own.items():
        if isinstance(names, str) or not names:
            raise TypeError(f"layers: {kind.__name__} has {names!r} and needs names of parameters, such as ('weight',)")
        found = [module for module in net.modules() if isinstance(module, kind)]
        if not found:
            raise ValueError(f"layers: the network has no {kind.__name__}")
        for name in names:
            if found[0]._parameters.get(name) is None:
                there = ", ".join(n for n, p in found[0]._parameters.items() if p is not None)
                raise ValueError(f"layers: {kind.__name__} has no parameter {name!r}: it has {there}")
