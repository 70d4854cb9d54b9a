"""Checks of outputs and targets. Every error names the argument, the value and the remedy.

A compiled program skips the checks that look at values: they would cut its graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi.likelihoods.base import LikelihoodError


def wide(output: Tensor) -> Tensor:
    """The output in float32 or better: half precision, as autocast gives it, is too coarse for a logarithm."""
    return output.to(torch.promote_types(output.dtype, torch.float32))


def checked_output(output: Tensor, expected: int, remedy: str) -> Tensor:
    """Outputs (..., n, expected), in float32 or better."""
    if output.dim() < 2 or output.shape[-1] != expected or not output.is_floating_point():
        raise LikelihoodError(
            f"output is {output.dtype} of shape {tuple(output.shape)}, but it must be floating-point numbers of shape "
            f"(examples, {expected}): {remedy}"
        )
    return wide(output)


def checked_shape(y: Tensor, expected: tuple[int, ...], remedy: str) -> Tensor:
    """Targets of exactly this shape; one target for each example may have an axis of its own, (n, 1).

    Broadcasting (n,) against (n, 1) would be silently wrong.
    """
    if y.dim() == len(expected) + 1 and y.shape[-1] == 1:
        y = y.squeeze(-1)
    if tuple(y.shape) != expected:
        raise LikelihoodError(f"y has shape {tuple(y.shape)}, but the outputs are for targets {expected}: {remedy}")
    return y


def checked_numbers(y: Tensor, expected: tuple[int, ...]) -> Tensor:
    """Finite numbers."""
    y = checked_shape(y, expected, "give the numbers of the same examples, in the same order")
    if not y.is_floating_point():
        raise LikelihoodError(
            f"y has dtype {y.dtype}, but a number is predicted: pass y.float(), or take Categorical if y are classes"
        )
    _refuse(~y.isfinite(), y, "is not a finite number: leave such examples out")
    return y


def checked_classes(y: Tensor, expected: tuple[int, ...], classes: int) -> Tensor:
    """Integers from 0 to classes - 1."""
    y = checked_shape(y, expected, "give one class for each example; one-hot targets need y.argmax(-1)")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise LikelihoodError(f"y has dtype {y.dtype}, but classes are integers: pass y.long()")
    _refuse((y < 0) | (y >= classes), y, f"is outside 0..{classes - 1}: number the classes from 0, or raise classes")
    return y.long()


def checked_answers(y: Tensor, expected: tuple[int, ...]) -> Tensor:
    """Yes or no, as booleans."""
    y = checked_shape(y, expected, "give one answer, 0 or 1, for each question")
    if y.dtype != torch.bool:
        _refuse((y != 0) & (y != 1), y, "is neither 0 (no) nor 1 (yes): take Categorical for more classes")
    return y.bool()


def _refuse(bad: Tensor, y: Tensor, why: str) -> None:
    """An error that names the first bad target."""
    if not torch.compiler.is_compiling() and bool(bad.any()):
        place = bad.nonzero()[0].tolist()
        raise LikelihoodError(f"y[{', '.join(map(str, place))}] = {y[tuple(place)].item()} {why}")
