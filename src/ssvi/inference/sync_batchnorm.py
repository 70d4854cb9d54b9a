"""BatchNorm by the statistics of the whole batch, where several processes share it. On CPUs and GPUs alike: torch's own
SyncBatchNorm refuses CPUs.

With n_r examples times positions in process r, mean m_r and variance v_r of a channel, and N = sum_r n_r:

    m = sum_r n_r m_r / N            v = sum_r n_r (v_r + (m_r - m)^2) / N
    y = w x_hat + b                  x_hat = (x - m) / sqrt(v + eps)
    dl/dx = w / sqrt(v + eps) (g - sum(g) / N - x_hat sum(g x_hat) / N)

where g = dl/dy, and the sums are over all processes. Each process sends 2 channels + 1 numbers forward and 2 channels
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from ssvi.inference import distributed

Forward = Callable[[Tensor], Tensor]


def synchronised(net: Any) -> Any:
    """The forward pass of a network (or of its wrapper) with synchronised BatchNorm, for training steps.

    The network itself stays as it is. So evaluation, `fit_batchnorm` and files, which one process alone may deal with,
    need to know nothing of this.
    """
    if distributed.ranks() == 1:
        return net
    norms = [module for module in net.modules() if isinstance(module, _BatchNorm)]

    def forward(x: Tensor) -> Tensor:
        with _synchronised(norms):
            y: Tensor = net(x)
        return y

    return forward


@contextmanager
def _synchronised(norms: list[_BatchNorm]) -> Iterator[None]:
    """Inside, the norms that are in training normalise by the statistics of all processes."""
    chosen = [norm for norm in norms if norm.training]
    for norm in chosen:
        norm.forward = _forward_of(norm)  # type: ignore[method-assign, assignment] # fused kernels see it, and leave the norm alone
    try:
        yield
    finally:
        for norm in chosen:
            del norm.forward


def _forward_of(norm: _BatchNorm) -> Forward:
    def forward(x: Tensor) -> Tensor:
        norm._check_input_dim(x)
        mean, var, count = whole_statistics(x)
        if norm.running_mean is not None:
            _track(norm, mean, var, count)
        y: Tensor = _Normalise.apply(x, norm.weight, norm.bias, mean, (var + norm.eps).rsqrt(), count)
        return y

    return forward


@torch.no_grad()
def whole_statistics(x: Tensor) -> tuple[Tensor, Tensor, float]:
    """Mean and (biased) variance of each channel over all processes, and over how many values."""
    wide = torch.promote_types(x.dtype, torch.float32)
    var, mean = torch.var_mean(x.to(wide), _all_but_channels(x), correction=0)
    count = mean.new_tensor([x.numel() / x.shape[1]])
    of_ranks = torch.stack(distributed.gather(torch.cat([mean, var, count])))  # (ranks, 2 channels + 1)
    means, variances, counts = of_ranks.split([len(mean), len(mean), 1], dim=1)
    total = counts.sum()
    mean = (counts * means).sum(0) / total
    var = (counts * (variances + (means - mean) ** 2)).sum(0) / total
    return mean, var, total.item()


@torch.no_grad()
def _track(norm: _BatchNorm, mean: Tensor, var: Tensor, count: float) -> None:
    """The running statistics, as torch.nn keeps them: `momentum=None` is the average over all batches."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.add_(1)
    weight = 1.0 / norm.num_batches_tracked.item() if norm.momentum is None else norm.momentum
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), weight)
    norm.running_var.lerp_((var * (count / (count - 1))).to(norm.running_var.dtype), weight)


class _Normalise(torch.autograd.Function):
    """y = w (x - mean) * scale + b, where mean and scale depend on x in all processes."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, scale: Tensor, count: float
    ) -> Tensor:
        """The output; what the backward pass needs is x, which is there anyway."""
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.count, ctx.has_bias = count, bias is not None
        x_hat = (x - _as(x, mean)) * _as(x, scale)
        y = x_hat if weight is None else x_hat * _as(x, weight)
        return (y if bias is None else y + _as(x, bias)).to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of the module's docstring; those of w and b are of this process, as those of other parameters."""
        x, weight, mean, scale = ctx.saved_tensors
        x_hat = (x - _as(x, mean)) * _as(x, scale)
        over = _all_but_channels(x)
        own = torch.stack([grad.sum(over), (grad * x_hat).sum(over)]).to(mean.dtype)
        total = own.clone()
        dist.all_reduce(total)
        weights = scale if weight is None else scale * weight
        centred = grad - _as(x, total[0] / ctx.count) - x_hat * _as(x, total[1] / ctx.count)
        grad_x = (centred * _as(x, weights)).to(x.dtype)
        grad_weight = None if weight is None else own[1].to(weight.dtype)
        return grad_x, grad_weight, own[0] if ctx.has_bias else None, None, None, None


def _all_but_channels(x: Tensor) -> list[int]:
    return [axis for axis in range(x.dim()) if axis != 1]


def _as(x: Tensor, of_channels: Tensor) -> Tensor:
    """One number per channel, in a shape that fits to x."""
    return of_channels.view(1, -1, *[1] * (x.dim() - 2))
