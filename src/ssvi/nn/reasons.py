"""Why a layer stays deterministic: in words for `summary`, with a remedy where there is one."""

from __future__ import annotations

from torch import nn
from torch.nn.utils.parametrize import ParametrizationList, is_parametrized

from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.classes import Kind

NORMALISATION = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)
SKIPPED = "named in skip"
FROZEN = "frozen"
UNSIZED = "its size is not known yet: run a batch through the network before to_bnn"


def check_plain(net: nn.Module, taker: str) -> None:
    """No layer of the network is Bayesian already; `taker` is the function that needs a plain one, for the message."""
    for name, module in net.named_modules():
        if isinstance(module, BayesLayer):
            kind = type(module).__name__
            raise ValueError(f"net is Bayesian already: {name or 'it'} is a {kind}; pass the plain network to {taker}")


def reason(module: nn.Module, kind: Kind | None, skipped: bool) -> str | None:
    """Why this module stays as it is; None if it becomes Bayesian, or has no parameters of its own."""
    own = [p for p in module._parameters.values() if p is not None]
    if skipped:
        return SKIPPED
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in own):
        return UNSIZED
    if kind is not None:
        return _reason_of_convertible(module, kind)
    if is_parametrized(module) or isinstance(module, ParametrizationList):
        return (
            "its weight is computed by a parametrization (weight_norm, spectral_norm): "
            "call torch.nn.utils.parametrize.remove_parametrizations before to_bnn"
        )
    if not own:
        return None
    if isinstance(module, NORMALISATION):
        return "normalisation stays deterministic"
    name = type(module).__name__
    return f"{name} is not a layer that we know: to_bnn(..., layers={{{name}: {_matrices(module)}}}) converts it"


def _matrices(module: nn.Module) -> tuple[str, ...]:
    """The parameters of a module that look like weights: those of two or more dimensions, or all if there are none."""
    own = {name: p for name, p in module._parameters.items() if p is not None}
    return tuple(name for name, p in own.items() if p.dim() > 1) or tuple(own)


def _reason_of_convertible(module: nn.Module, kind: Kind) -> str | None:
    for name in kind.random:
        parameter = module._parameters.get(name)
        if parameter is None:
            return f"its {name} is computed by a hook (weight_norm, pruning)"
        if not parameter.is_floating_point():
            return f"its {name} is {parameter.dtype}"
        if not parameter.requires_grad:
            return f"{FROZEN}: its {name} does not require a gradient"
    return _reason_of_table(module) if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) else None


def _reason_of_table(table: nn.Embedding | nn.EmbeddingBag) -> str | None:
    """What a random table cannot do."""
    if table.max_norm is not None:
        return f"max_norm={table.max_norm} writes into the weight: make it with max_norm=None"
    if table.sparse:
        return "sparse=True asks for sparse gradients of the weight: make it with sparse=False"
    if table.weight.shape[0] < 2 and table.padding_idx is not None:
        return "its only row is padding"
    return None


def is_a_choice_of_the_user(why: str) -> bool:
    """Whether the user has decided that a layer stays: it is named in `skip`, or frozen."""
    return why == SKIPPED or why.startswith(FROZEN)
