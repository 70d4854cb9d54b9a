"""Modules whose calls count, and not only what they compute."""

from __future__ import annotations

from torch import nn


def observed(module: nn.Module) -> bool:
    """Whether a module must be called as one: it has hooks, or a `forward` of its own in place of that of its class."""
    forward = module._forward_hooks or module._forward_pre_hooks
    backward = module._backward_hooks or module._backward_pre_hooks
    return bool(forward or backward or "forward" in vars(module))
