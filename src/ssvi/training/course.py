"""What a method does besides steps: at the end of an epoch, and at the end of training.

Most do nothing. Samplers and ensembles keep states in the run folder; others prune what they have trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from ssvi.inference import distributed
from ssvi.inference import mask_sampler as mbnn
from ssvi.inference.mixture import Mixture
from ssvi.methods import group_vd, sbp, snr_prune, vd
from ssvi.nn.batchnorm import recompute_batchnorm
from ssvi.nn.layers import TWINS
from ssvi.nn.reach import sparsified
from ssvi.training import model_file as saving
from ssvi.training.build import dense_names
from ssvi.training.parts import Parts
from ssvi.training.recipe import Recipe, word_or_number

BATCHES = 200
"""From so many batches at most BatchNorm's statistics are computed anew."""


class Course:
    """The course of a run whose product is the network that was trained.

    `fresh()` makes a plain network with new random weights, `inputs()` goes once through the training images.
    """

    def __init__(
        self,
        recipe: Recipe,
        parts: Parts,
        fresh: Callable[[], nn.Module],
        inputs: Callable[[], Iterator[Tensor]],
        folder: Path,
    ) -> None:
        self.recipe, self.parts, self.fresh, self.inputs, self.folder = recipe, parts, fresh, inputs, folder

    def end_of_epoch(self, epoch: int) -> None:
        """Epoch number `epoch` is trained."""

    def rewind(self, epoch: int) -> None:
        """Training goes on with that epoch. Called before the states of the parts are loaded."""

    def product(self) -> nn.Module:
        """The network that is saved and evaluated; the one that was trained may be used up for it."""
        return self.parts.net


class _States(Course):
    """Keeps networks in the run folder; the product is their mixture."""

    def keep(self, epoch: int, net: nn.Module) -> None:
        """Write a network, whole or not at all."""
        if distributed.rank() == 0:
            self._folder.mkdir(exist_ok=True)
            saving.save(net, self._folder / f"epoch-{epoch:06d}.safetensors")

    def rewind(self, epoch: int) -> None:
        """Forget what was kept later: it will be kept again."""
        for file in self._files():
            if int(file.stem.removeprefix("epoch-")) >= epoch:
                file.unlink(missing_ok=True)

    def product(self) -> nn.Module:
        """All that was kept."""
        return Mixture(saving.load(file, net=self.fresh()) for file in self._files())

    @property
    def _folder(self) -> Path:
        return self.folder / "states"

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("epoch-*.safetensors"))


class _Ensemble(_States):
    """Trains one member after the other, each from weights of its own."""

    def end_of_epoch(self, epoch: int) -> None:
        """Keep a member that is trained, and begin with the next."""
        member, rest = divmod(epoch + 1, self.recipe.epochs)
        if rest == 0:
            self.keep(epoch, self.parts.net)
            torch.manual_seed(self.recipe.seed + 1_000_003 * member)
            self.parts.net.load_state_dict(self.fresh().state_dict())
            self.parts.optimizer.state.clear()


class _Chain(_States):
    """Keeps `members` states of a sampler, evenly after the burn-in."""

    def end_of_epoch(self, epoch: int) -> None:
        """Keep a state if it is time."""
        left, gap = self.recipe.epochs - 1 - epoch, self.recipe.state_gap
        if left % gap == 0 and left // gap < self.recipe.members:
            self.keep(epoch, self._state())

    def _state(self) -> nn.Module:
        """The network as it is, with BatchNorm's statistics of its own weights and not of those that it came by."""
        net = self.parts.net
        if self.recipe.method == "mbnn":
            state = mbnn.compact(net, next(self.inputs()))
        else:
            nonzero = {name: m.weight != 0 for name, m in net.named_modules() if type(m) in TWINS}
            state = sparsified(net, nonzero)
        recompute_batchnorm(state, islice(self.inputs(), BATCHES))
        return state


class _Pruned(Course):
    """Prunes the network that was trained, and computes the statistics of its BatchNorm anew: there is less noise."""

    def product(self) -> nn.Module:
        """The pruned network."""
        pruned = self._prune(self.parts.net)
        recompute_batchnorm(pruned, islice(self.inputs(), BATCHES))
        return pruned

    def _prune(self, net: nn.Module) -> nn.Module:
        threshold = word_or_number(self.recipe.threshold)
        chosen = {} if isinstance(threshold, str) else {"threshold": threshold}
        if self.recipe.method == "vd":
            vd.prune(net, dense=dense_names(self.recipe, self.fresh()), **chosen)
            return net
        prune = group_vd.prune if self.recipe.method == "group-vd" else sbp.prune
        return prune(net, next(self.inputs()), **chosen)


class _PrunedBySNR(Course):
    """Prunes dense VI to the density at the end."""

    def product(self) -> nn.Module:
        """The pruned network."""
        self.prune()
        return self.parts.net

    def prune(self) -> None:
        """Cut the network, and compute its statistics anew."""
        self.cut()
        recompute_batchnorm(self.parts.net, islice(self.inputs(), BATCHES))

    def cut(self) -> None:
        """Forget the weights with the smallest |mu|/sigma, here and in the optimiser."""
        recipe, parts = self.recipe, self.parts
        snr_prune.prune(
            parts.net, recipe.density, scope=recipe.prune_scope, dense=dense_names(recipe, self.fresh()),
            optimizer=parts.optimizer,
        )  # fmt: skip


class _FineTuned(_PrunedBySNR):
    """Prunes before the last epochs, which train the weights that are left."""

    def end_of_epoch(self, epoch: int) -> None:
        """Prune if it is time."""
        if epoch + 1 == self._dense_epochs:
            self.prune()

    def rewind(self, epoch: int) -> None:
        """From there on the parameters have the shapes of the pruned network; their values will be loaded."""
        if epoch >= self._dense_epochs:
            self.cut()

    def product(self) -> nn.Module:
        """The network that was pruned on the way."""
        return self.parts.net

    @property
    def _dense_epochs(self) -> int:
        """At least one; a run of one epoch is pruned at its end."""
        return max(1, self.recipe.epochs - max(1, round(self.recipe.finetune * self.recipe.epochs)))


_COURSES: dict[str, type[Course]] = {
    "ensemble": _Ensemble, "aeb": _Chain, "mbnn": _Chain,
    "vd": _Pruned, "group-vd": _Pruned, "sbp": _Pruned, "snr-prune": _PrunedBySNR,
    "snr-finetune": _FineTuned,
}  # fmt: skip


def course(
    recipe: Recipe, parts: Parts, fresh: Callable[[], nn.Module], inputs: Callable[[], Iterator[Tensor]], folder: Path
) -> Course:
    """The course of the recipe's method."""
    return _COURSES.get(recipe.method, Course)(recipe, parts, fresh, inputs, folder)
