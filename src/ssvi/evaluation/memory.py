"""Bytes of a network in memory, and of dense VI of the same network: both counted by the same rules."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.evaluation.layers import deterministic_weights, distinct_posteriors
from ssvi.nn.gates import gates
from ssvi.nn.theta_statistics import stored


def network_bytes(net: nn.Module) -> int:
    """All parameters and buffers, what layers share once, but no index of a layer whose weights are all live.

    Such an index is 0, 1, ..., d - 1: it says nothing, dense VI needs none, and a model file has none.
    """
    implied = [p.index for p in distinct_posteriors(net) if p.s == p.d]
    return _bytes([*net.parameters(), *net.buffers()]) - _bytes(implied)


def dense_vi_bytes(net: nn.Module, thetas: int) -> int:
    """`network_bytes` of the same network after dense VI, whatever method trained this one.

    Of every weight tensor it has mu, rho and the start of sigma; each BatchNorm layer also has its statistics under
    theta = mu and `thetas` thetas. It has no gates of channels. The layers that are deterministic beside Bayesian ones
    stay so; if none is Bayesian, all are in dense VI.
    """
    posteriors = distinct_posteriors(net)
    now = [tensor for p in posteriors for tensor in (*p.parameters(), *p.buffers())] or deterministic_weights(net)
    given = [(p.d, p.mu.element_size()) for p in posteriors] or [(w.numel(), w.element_size()) for w in now]
    parts = [*(gate for _, gate in gates(net)), *stored(net).values()]
    own = [tensor for part in parts for tensor in (*part.parameters(), *part.buffers())]
    rest = _bytes([*net.parameters(), *net.buffers()]) - _bytes(now) - _bytes(own)
    return rest + sum((2 * d + 1) * size for d, size in given) + _statistics_bytes(net, thetas)


def _statistics_bytes(net: nn.Module, thetas: int) -> int:
    """Of every BatchNorm layer the mean and variance of each channel under 1 + thetas thetas, a seed, a fingerprint, and a
    byte that says that thetas come in pairs."""
    norms = [module for module in net.modules() if isinstance(module, _BatchNorm)] if thetas else []
    running = [norm.running_mean for norm in norms if norm.running_mean is not None]
    return sum(2 * (1 + thetas) * mean.numel() * mean.element_size() + 2 * 8 + 1 for mean in running)


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
