"""Whether something else than plain autograd is at work: then kernels with gradients of their own do not serve."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad


def active() -> bool:
    """Whether a transform of `torch.func` (vmap, grad, jvp, ...) or a forward-mode gradient is at work.

    Such tensors have no memory to point at, or more than that.
    """
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
