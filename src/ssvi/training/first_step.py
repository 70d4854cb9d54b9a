"""A trial before a run begins: one batch passes through a run that is thrown away, from the first step to the product.

What would stop the training in its first step or at its very end is found before there is a run folder: a network with too
few outputs, a layer name that no layer has, a density that leaves a layer without weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

from torch import Tensor, nn

from ssvi import methods
from ssvi.errors import UserError
from ssvi.likelihoods import Categorical
from ssvi.likelihoods.base import LikelihoodError
from ssvi.training.epoch_end import TrainingError
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run import Run


class _InMemory:
    """The networks that the trial keeps; nothing is written."""

    def __init__(self) -> None:
        self._kept: list[nn.Module] = []

    def keep(self, epoch: int, net: nn.Module) -> None:
        self._kept.append(deepcopy(net))

    def forget_from(self, epoch: int) -> None:
        self._kept.clear()

    def networks(self) -> Iterator[nn.Module]:
        return iter(self._kept)


def try_first_step(run: Run) -> None:
    """Train `run`, which is of no use afterwards, for one step, and make its product. Writes nothing.

    Random numbers are drawn, so the run that counts must set the seeds after this.
    """
    x, y = next(iter(run.batches))
    if run.recipe.micro_batches > len(x):
        raise RecipeError(f"micro_batches={run.recipe.micro_batches} must be at most {len(x)}, the examples of a batch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the run that counts gives the same ones
            _pass(run, x.to(run.device), y.to(run.device))
            _make_product(run)
    except LikelihoodError as error:
        raise RecipeError(f"model={run.recipe.model!r}: {error}") from error
    except UserError:
        raise
    except FloatingPointError as error:
        raise TrainingError(str(error)) from error
    except _failures(run.recipe) as error:
        raise RecipeError(
            f"model={run.recipe.model!r}, method={run.recipe.method!r}: a batch of shape {tuple(x.shape)} did not pass "
            f"({type(error).__name__}: {one_line(error)}); change the network, or the size of the data or of the batch"
        ) from error


def _failures(recipe: Recipe) -> type[Exception] | tuple[type[Exception], ...]:
    """What may go wrong without a bug of ours: everything, where the network or the method is the user's own."""
    own = ":" in recipe.model or recipe.method not in methods.NAMES
    return Exception if own else (RuntimeError, ValueError, MemoryError)


def _pass(run: Run, x: Tensor, y: Tensor) -> None:
    """The first step on this batch, with nothing else to be read and nothing to be written."""
    net, job = run.net, run.training.job
    run.training = replace(run.training, job=replace(job, states=_InMemory(), inputs=lambda: iter([x])))
    run.forward = lambda x: _checked(run, net(x), len(x))
    net.train()
    run.step(x, y)


def _make_product(run: Run) -> None:
    """The shape that the network has in its last epoch, the end of that epoch, and what is saved then."""
    last = run.training.job.epochs
    try:
        run.method.resume(run.training, last)
        run.method.end_of_epoch(run.training, last - 1)
        run.method.product(run.training)
    except ValueError as error:  # the library's own words: they name the argument, the value and the remedy
        raise RecipeError(str(error)) from error


def _checked(run: Run, output: object, count: int) -> Tensor:
    """The output of the network, if it is a tensor with one number for each class."""
    likelihood, found = run.task.likelihood, type(output).__name__
    needed = f"(examples, {likelihood.outputs})"
    if isinstance(output, Tensor):
        if not isinstance(likelihood, Categorical) or tuple(output.shape) == (count, likelihood.outputs):
            return output  # other likelihoods look at their outputs themselves
        found = f"a tensor of shape {tuple(output.shape)}"
    raise RecipeError(
        f"model={run.recipe.model!r} returned {found} for {count} examples, but a tensor of shape {needed} is needed: one "
        "output for each class, as many as the argument `classes` says"
    )


def one_line(error: BaseException) -> str:
    """What an error of another library says, on one line that is not too long."""
    said = " ".join(str(error).split())
    return said if len(said) <= 300 else said[:300] + "..."
