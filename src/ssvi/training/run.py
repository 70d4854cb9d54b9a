"""Algorithm 1: a network is trained by any method, in a run folder that survives a kill at any moment."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssvi.data import Batches, Examples, TrainingData
from ssvi.inference import distributed
from ssvi.inference.evaluate import Evaluation, NumberEvaluation
from ssvi.inference.predict import networks
from ssvi.inference.sync_batchnorm import synchronised
from ssvi.inference.watch import DivergenceWarning
from ssvi.methods.base import Method
from ssvi.methods.job import Training
from ssvi.nn.fit_batchnorm import fit_batchnorm
from ssvi.signals import on_stop_signal
from ssvi.training import checkpoint, epoch_end
from ssvi.training.epoch_end import TrainingError
from ssvi.training.iou_log import IoULine, iou_line
from ssvi.training.progress import EpochLine, Pace, Progress, StepNumbers
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run_folder import RunFolder
from ssvi.training.tasks import Task

EVALUATION_BATCH = 500
"""Images that pass through the network at once when it is evaluated."""

NO_TEST = {"examples": 0, "reason": "there are no test examples, so nothing was evaluated"}
"""The result of a run without test examples."""

THETAS = 20
"""BatchNorm has statistics for so many thetas at least, so that evaluations may ask for more samples than the run."""


def ignore(numbers: object) -> None:
    """Do nothing with the numbers of a step or an epoch: nothing shows them."""


@dataclass
class Run:
    """One training run; `ssvi.training.start` begins a new one, or goes on with an earlier one."""

    folder: RunFolder
    recipe: Recipe
    task: Task
    validation: Examples
    batches: Batches
    method: Method
    training: Training[Any]
    forward: Callable[[Tensor], Tensor]
    """The network, wrapped where several processes train it."""
    progress: Progress
    processes: int = 1
    begin_method: Callable[[Run], None] | None = None
    """Begins the method with the network that is trained first, where the recipe says so and it has not yet begun."""
    first_epoch: int = 0
    """The epoch in which the method began."""
    interrupted: str | None = None
    """The signal that stopped the run, or another reason."""
    iou_lines: list[IoULine] = field(default_factory=list)
    """The updates of gamma since the last checkpoint, if they are recorded; they are written with the next one."""

    @property
    def data(self) -> TrainingData:
        """What is trained on."""
        return self.task.data

    @property
    def net(self) -> nn.Module:
        """The network that is trained."""
        return self.training.net

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.net.parameters()).device

    def precision(self) -> torch.autocast:
        """Around a forward pass in training: autocast where the recipe says so."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")

    @property
    def done(self) -> bool:
        """Whether every epoch is trained."""
        return self.progress.epoch >= self.recipe.all_epochs

    def train(
        self, on_step: Callable[[StepNumbers], None] = ignore, on_epoch: Callable[[EpochLine], None] = ignore
    ) -> None:
        """Train to the end, or until a signal; the state is saved in both cases."""
        if distributed.rank() == 0:
            self.folder.lock.take()
        with on_stop_signal(self.stop), warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # it is an error here, which says the same
            if self.progress.step == 0:
                self.save()
            while not self.done and not self._asked_to_stop():
                try:
                    self._epoch(on_step, on_epoch)
                except FloatingPointError as error:
                    raise TrainingError(str(error)) from error
        if self._asked_to_stop():
            self.save()
            self.folder.lock.free()

    def _epoch(self, on_step: Callable[[StepNumbers], None], on_epoch: Callable[[EpochLine], None]) -> None:
        """The steps of an epoch that are left, and its end."""
        steps = len(self.batches)
        pace = Pace(steps, self.recipe.batch_size, first=self.progress.step % steps)
        self.net.train()
        for x, y in self.batches.epoch(self.progress.epoch, pace.first):
            self.step(x.to(self.device), y.to(self.device))
            on_step(pace.numbers(self.progress, self.training))
            if self.progress.step % steps == 0:
                break  # the end of the epoch saves, below
            if self._asked_to_stop():
                return
            if self.recipe.checkpoint_steps and self.progress.step % self.recipe.checkpoint_steps == 0:
                self.save()
        on_epoch(self._end_of_epoch(pace))

    def step(self, x: Tensor, y: Tensor) -> None:
        """One step of Algorithm 1 on a batch."""
        training = self.training
        # a step on phi, by a gradient of the loss (Eq. 3)
        training.optimizer.zero_grad()
        loss, nll = self._gradients(x, y)
        if self.recipe.clip:
            nn.utils.clip_grad_norm_(training.clipped, self.recipe.clip)
        if not training.after_step.replaces_step():
            training.optimizer.step()
        training.scheduler.step()
        # every M-th time an update of gamma: removal and addition
        work = training.after_step.act(x, y)
        self.progress.count(loss, nll, work)
        if work.iou is not None:
            self.iou_lines.append(iou_line(work.iou, self.progress.epoch, self.progress.step))

    def _gradients(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Backward passes of the parts of a batch, one after the other; the mean loss and NLL of the batch."""
        training, parts = self.training, self.recipe.micro_batches
        losses = torch.zeros(2, device=x.device)
        for x_part, y_part in zip(x.tensor_split(parts), y.tensor_split(parts), strict=True):
            share = len(x_part) / len(x)
            with training.sampling():
                with self.precision():
                    output = self.forward(x_part)
                nll = training.job.nll(output, y_part)
                loss = training.loss(nll)
                if not torch.isfinite(loss):
                    raise TrainingError(f"loss={loss.item()} at step {self.progress.step}: lower lr or sigma_init")
                loss.backward(torch.full_like(loss, share * parts if training.one_theta else share))
            losses += share * torch.stack([loss.detach(), nll.detach()])
        return losses[0], losses[1]

    def _end_of_epoch(self, pace: Pace) -> EpochLine:
        """Summarise the epoch, let the method do its part, write the log and a checkpoint."""
        progress, validation = self.progress, in_order(self.data, self.validation)
        progress.average_over_processes()
        numbers = pace.numbers(progress, self.training)
        line = epoch_end.summarise(numbers, self.training, progress, self.task, self.batches, validation)
        with self.folder.writing():
            self.method.end_of_epoch(self.training, progress.epoch - self.first_epoch)
            if self.begin_method is not None and progress.epoch + 1 == self.recipe.warm_epochs:
                self.begin_method(self)
            self.progress = progress.next_epoch(epoch_end.indices(self.net))
            if distributed.rank() == 0:
                self.folder.log.append(line)
        self.save()
        return line

    def save(self) -> Path:
        """A checkpoint from which `resume` goes on bit for bit."""
        if distributed.rank() == 0:
            with self.folder.writing():
                self.folder.iou_log.append(self.iou_lines)
        self.iou_lines.clear()
        return checkpoint.save(self.folder, self.recipe, self.training, self.progress)

    def stop(self, reason: str) -> None:
        """Ask the run to stop after the step in progress."""
        self.interrupted = reason

    def _asked_to_stop(self) -> bool:
        """Whether this process or another one was asked to stop; then all stop at the same step."""
        if self.processes > 1 and distributed.any_of(self.interrupted is not None):
            self.interrupted = self.interrupted or "another process was interrupted"
        return self.interrupted is not None


def finish(run: Run) -> Evaluation | NumberEvaluation | None:
    """Write result.json and the model file, and free the folder; None where there are no examples for testing."""
    run.folder.lock.take()
    torch.manual_seed(run.recipe.seed)
    try:
        net = run.method.product(run.training).to(run.device)
    except ValueError as error:  # a density or threshold that leaves nothing of a layer
        raise RecipeError(str(error)) from error
    _fit_batchnorm(run, net)
    return _write_end(run, net)


def _write_end(run: Run, net: nn.Module) -> Evaluation | NumberEvaluation | None:
    """The model file comes last: with it the run counts as finished."""
    batches = in_order(run.data, run.data.test)
    evaluation = run.task.evaluate(net, batches, run.recipe.samples) if len(batches.split) else None
    with run.folder.writing():
        run.folder.write_text("result.json", asdict(evaluation) if evaluation else NO_TEST)
        run.task.save(net, run.folder.path / "model.safetensors")
    run.folder.lock.free()
    return evaluation


def wrapped(recipe: Recipe, net: nn.Module) -> Callable[[Tensor], Tensor]:
    """The network, wrapped where several processes train it."""
    forward = distributed.parallel(net)
    return synchronised(forward) if recipe.sync_batchnorm else forward


def in_order(data: TrainingData, examples: Examples) -> Batches:
    """Batches for an evaluation, as the network sees them."""
    return Batches(examples, EVALUATION_BATCH, normalise=data.normalise, shuffle=False)


def _fit_batchnorm(run: Run, net: nn.Module) -> None:
    """BatchNorm's statistics for each theta of the evaluations, from batches of the size of those of the training."""
    inputs = list(islice(run.training.job.inputs(), run.recipe.batchnorm_batches))
    full = [x for x in inputs if len(x) == len(inputs[0])]  # the last one may be a single image, which has no variance
    for member in networks(net) if full else ():
        fit_batchnorm(member, full, max(run.recipe.samples, THETAS))
