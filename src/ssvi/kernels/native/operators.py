"""Operators of torch, with a shorter way for the ordinary call.

torch.compile, torch.export, fake tensors and dispatch modes need an operator of torch. A call of one goes through layers of
Python that take longer than a small layer computes. Where nobody looks at operators, the same functions are called
without them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import profiler

_PLAIN = (Tensor, nn.Parameter)
_is_batched: Callable[[Tensor], bool] = torch._C._functorch.is_legacy_batchedtensor


class Operator:
    """A function of CPU tensors as an operator of torch, `op`; calling it takes the shorter way where it may."""

    def __init__(self, name: str, function: Callable[..., Any], changes: tuple[str, ...] = ()) -> None:
        self.op = torch.library.custom_op(name, function, mutates_args=changes, device_types="cpu")
        self.__doc__ = function.__doc__
        self._function = function
        self._defaults = tuple(parameter.default for parameter in signature(function).parameters.values())
        self._differentiable: Callable[..., Any] | None = None

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What the operator returns for fake tensors: shapes alone."""
        registered: Callable[..., Any] = self.op.register_fake(function)
        return registered

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., None]) -> None:
        """Its backward pass, and what that keeps: the same two functions for both ways."""
        self.op.register_autograd(backward, setup_context=setup_context)
        self._differentiable = _differentiable(self._function, setup_context, backward)

    def __call__(self, *arguments: Any) -> Any:
        """The value of the function; all arguments by their places."""
        if _is_watched(arguments):
            return self.op(*arguments)
        arguments += self._defaults[len(arguments) :]
        if self._differentiable is None or not torch.is_grad_enabled():
            return self._function(*arguments)
        return self._differentiable(*arguments)


def _differentiable(
    function: Callable[..., Any], setup_context: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """The function with its backward pass. With a setup_context of its own, torch would look at signatures in every call."""

    def forward(ctx: Any, *arguments: Any) -> Any:
        output = function(*arguments)
        setup_context(ctx, arguments, output)
        return output

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(function.__name__, (torch.autograd.Function,), members)
    # What `Function.apply` calls once it has looked for torch.func, where the native kernels do not serve anyway.
    apply: Callable[..., Any] = super(torch.autograd.Function, made).apply
    return apply


def operator(name: str, changes: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Operator]:
    """Decorator: the function becomes an operator of this name, which changes these arguments in place."""
    return lambda function: Operator(name, function, changes)


def _is_watched(arguments: tuple[Any, ...]) -> bool:
    """Whether somebody looks at operators: a compiler, a tracer, a profiler, a dispatch mode, or a subclass of Tensor."""
    if torch.compiler.is_compiling() or torch._C._is_tracing() or torch._C._len_torch_dispatch_stack() > 0:
        return True
    return profiler._is_profiler_enabled or any(map(_is_special, arguments))


def _is_special(value: Any) -> bool:
    """A subclass of Tensor, or many tensors in one: `torch.autograd.grad(..., is_grads_batched=True)` gives these."""
    if type(value) in _PLAIN:
        return _is_batched(value)
    return isinstance(value, Tensor)
