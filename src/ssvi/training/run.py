"""Training: Algorithm 1 in a loop short enough to read beside the paper, in a run folder that survives a kill."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssvi import flops
from ssvi.data import Batches, DataSet, augment, load
from ssvi.inference import distributed
from ssvi.inference.evaluate import evaluate
from ssvi.methods.catalogue import METHODS
from ssvi.training import build, guard, memory
from ssvi.training import epoch_log as monitor
from ssvi.training import model_file as saving
from ssvi.training.course import course
from ssvi.training.parts import parts
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunError, RunFolder

AUGMENT = {"none": None, "crop": augment.crop, "crop-flip": augment.crop_flip}

Report = Callable[[dict[str, Any]], None]
"""What to do with the numbers of a step or an epoch: draw a bar, write a line."""


@dataclass
class Progress:
    """Where a run is, and the sums of the epoch in progress: all that is not in a part of its own."""

    epoch: int = 0
    step: int = 0
    loss: float = 0.0
    nll: float = 0.0
    moved: int = 0
    dense_gradients: int = 0
    indices: dict[str, Tensor] = field(default_factory=dict)
    """The support of each layer at the start of the epoch."""


class Run:
    """One training run."""

    def __init__(self, folder: RunFolder, recipe: Recipe, data: DataSet) -> None:
        self.folder, self.recipe, self.data = folder, recipe, data
        torch.manual_seed(recipe.seed)
        self.train_split, self.validation = (
            data.split_validation(recipe.validation, recipe.seed) if recipe.validation else (data.train, data.test[:0])
        )
        train = self.train_split
        full = len(train) >= recipe.batch_size  # a last batch that is not full is left out, unless it is the only one
        self.batches: Batches = data.batches(
            train, recipe.batch_size, seed=recipe.seed, augment=AUGMENT[recipe.augment], drop_last=full,
            rank=distributed.rank(), ranks=distributed.ranks(),
        )  # fmt: skip
        self.net = build.trained(recipe, self._plain())
        self.parts = parts(recipe, self.net, len(train), len(self.batches))
        self.course = course(recipe, self.parts, self._plain, self._inputs, folder.path)
        self.forward = distributed.parallel(self.net)
        torch.manual_seed(recipe.seed + distributed.rank())  # the noise of each process is its own
        self.progress = Progress(indices=monitor.indices(self.net))
        self.interrupted: str | None = None

    def _plain(self) -> nn.Module:
        return build.network(self.recipe, *_shape(self.data))

    def _inputs(self) -> Iterator[Tensor]:
        return (x for x, _ in self.data.batches(self.train_split, self.recipe.batch_size, seed=self.recipe.seed))

    @property
    def done(self) -> bool:
        """Whether every epoch is trained."""
        return self.progress.epoch >= self.recipe.all_epochs

    def train(self, on_step: Report, on_epoch: Report) -> None:
        """Train to the end, or until a signal; the state is saved in both cases."""
        with _Signals(self):
            if self.progress.step == 0:
                self.save()
            while not self.done and not self.interrupted:
                self._epoch(on_step, on_epoch)
        if self.interrupted:
            self.save()

    def _epoch(self, on_step: Report, on_epoch: Report) -> None:
        now, start = self.progress, time.perf_counter()
        first = now.step % len(self.batches)
        self.net.train()
        for x, y in self.batches.epoch(now.epoch, first):
            self._step(x, y)
            on_step(self._numbers(start, first))
            if now.step % len(self.batches) == 0:
                break  # what is due after the last step is done below
            if distributed.any_of(self.interrupted is not None):
                self.interrupted = self.interrupted or "another process was interrupted"
                return
            if self.recipe.checkpoint_steps and now.step % self.recipe.checkpoint_steps == 0:
                self.save()
        now.loss, now.nll = distributed.mean_(torch.tensor([now.loss, now.nll], dtype=torch.float64)).tolist()
        line = self._numbers(start, first) | self._end_of_epoch()
        self.course.end_of_epoch(now.epoch)
        self.progress = Progress(now.epoch + 1, now.step, indices=monitor.indices(self.net))
        if distributed.rank() == 0:
            self.folder.log(line)
        self.save()
        on_epoch(line)

    def _step(self, x: Tensor, y: Tensor) -> None:
        """One gradient step on phi, and what the method does after it: every M-th time an update of gamma."""
        now, made = self.progress, self.parts
        nll = F.cross_entropy(self.forward(x), y)
        loss = nll if made.loss is None else made.loss(nll)
        if not torch.isfinite(loss):
            raise guard.TrainingError(f"loss={loss.item()} at step {self.progress.step}: lower lr or sigma_init")
        made.optimizer.zero_grad()
        loss.backward()
        if not (self.recipe.skip_step and made.updates_gamma):
            made.optimizer.step()
        made.decay.step()
        now.dense_gradients += made.updates_gamma * self.recipe.mc_steps
        now.moved += made.after(x, y)
        now.step += 1
        now.loss += loss.item()
        now.nll += nll.item()

    def _numbers(self, start: float, first: int) -> dict[str, Any]:
        """The averages of the epoch so far."""
        now, loss = self.progress, self.parts.loss
        steps = now.step - now.epoch * len(self.batches)
        seconds = time.perf_counter() - start
        return {
            "epoch": now.epoch,
            "step": now.step,
            "loss": now.loss / steps,
            "nll": now.nll / steps,
            "kl": loss.terms.kl if loss else 0.0,
            "beta": loss.terms.beta if loss else 0.0,
            "rate": self.parts.rate,
            "lr": self.parts.decay.get_last_lr()[0],
            "moved": now.moved,
            "images_per_second": (steps - first) * self.recipe.batch_size / seconds,
            "seconds": seconds,
        }

    def _end_of_epoch(self) -> dict[str, Any]:
        """What is looked at once per epoch: the guard, validation at the posterior mean, cost, sigma and the support."""
        guard.check(self.net)
        return {
            "validation": monitor.validate(self.net, self.data.batches(self.validation, 500, shuffle=False)),
            "flops": self._flops(),
            "peak_memory_bytes": memory.peak(),
            **monitor.support(self.net, self.progress.indices),
        }

    def _flops(self) -> int:
        """Of the epoch, by the network at its end."""
        steps, recipe = len(self.batches), self.recipe
        proposals = steps // recipe.every if recipe.method == "mbnn" else 0
        return flops.training(
            self.net, self.train_split.x[:1].float(), steps=steps, batch_size=recipe.batch_size,
            updates=self.progress.dense_gradients, proposals=proposals,
        )  # fmt: skip

    def save(self) -> Path:
        """A checkpoint from which `resume` goes on bit for bit."""
        random = distributed.gather(torch.get_rng_state())
        if distributed.rank() > 0:
            return self.folder.path
        state = {"parts": self.parts.state_dict(), "progress": asdict(self.progress), "rng": random}
        try:
            return self.folder.save_checkpoint(self.progress.step, state)
        except OSError as error:
            raise RunError(
                f"{self.folder.path}: no checkpoint could be written ({error}); the last one is intact"
            ) from error

    def restore(self) -> list[str]:
        """Take the newest intact checkpoint; returns what was wrong with newer ones."""
        state, damaged = self.folder.load_checkpoint()
        try:
            self.course.rewind(state["progress"]["epoch"])
            self.parts.load_state_dict(state["parts"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise RunError(f"{self.folder.path}: the checkpoint is of another network: {error}") from error
        self.progress = Progress(**state["progress"])
        torch.set_rng_state(state["rng"][distributed.rank()])
        if distributed.rank() == 0:
            self.folder.forget_epochs_from(self.progress.epoch)
        return damaged

    def finish(self) -> dict[str, Any]:
        """Write the model file and its numbers on the test set."""
        _, channels, size = _shape(self.data)
        about = {"classes": list(self.data.classes), "channels": channels, "size": size,
                 "mean": self.data.mean, "std": self.data.std}  # fmt: skip
        torch.manual_seed(self.recipe.seed)
        self.net = self.course.product()
        saving.save(self.net, self.folder.path / "model.safetensors", recipe=self.recipe, about=about)
        test = self.data.batches(self.data.test, 500, shuffle=False)
        result = asdict(evaluate(self.net, test, self.recipe.samples)) if len(self.data.test) else {}
        self.folder.write_json("result.json", result)
        return result


def start(recipe: Recipe, out: str | Path, data_dir: str | Path | None = None) -> Run:
    """A new run in the folder `out`."""
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    _check_processes(recipe)
    data = load(recipe.data, data_dir)
    folder = RunFolder(out)
    if distributed.rank() == 0:
        folder = RunFolder.create(out, recipe, distributed.ranks())
    return Run(folder, recipe, data)


def resume(out: str | Path, data_dir: str | Path | None = None) -> tuple[Run, list[str]]:
    """The run in the folder `out`, where it was; and what was wrong with newer checkpoints."""
    folder = RunFolder(out)
    recipe = folder.recipe
    processes = folder.machine["processes"]
    if processes != distributed.ranks():
        raise RunError(
            f"{folder.path} was trained by {processes} process(es) and there are {distributed.ranks()} now: the noise of "
            f"each is its own, so go on with the same number (torchrun --nproc-per-node {processes} -m ssvi train --resume)"
        )
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    run = Run(folder, recipe, load(recipe.data, data_dir))
    return run, run.restore() if folder.checkpoints() else []


def _check_processes(recipe: Recipe) -> None:
    if distributed.ranks() > 1 and (METHODS[recipe.method].chain or recipe.method == "snr-finetune"):
        raise RunError(
            f"method={recipe.method!r} with {distributed.ranks()} processes: its weights would differ between them "
            "(its noise or its pruning is not shared); train it in one process"
        )


def _shape(data: DataSet) -> tuple[int, int, int]:
    _, channels, size, _ = data.train.x.shape
    return len(data.classes), channels, size


class _Signals:
    """Inside, Ctrl-C and SIGTERM ask the run to stop after the step in progress."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        def ask(number: int, frame: FrameType | None) -> None:
            self.run.interrupted = signal.Signals(number).name

        self.before = {which: signal.signal(which, ask) for which in (signal.SIGINT, signal.SIGTERM)}

    def __exit__(self, *exc: object) -> None:
        for which, handler in self.before.items():
            signal.signal(which, handler)
