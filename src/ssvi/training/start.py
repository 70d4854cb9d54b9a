"""The beginning of a run, new or resumed: data, network and method are made, and then the run folder."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssvi import methods
from ssvi.data import Batches, Examples, TrainingData
from ssvi.inference import distributed
from ssvi.methods.base import begin
from ssvi.methods.job import Job
from ssvi.training import epoch_end, longer
from ssvi.training.checkpoint import STATES, StateFolder
from ssvi.training.device import device_of
from ssvi.training.examples_check import check_examples
from ssvi.training.first_step import try_first_step
from ssvi.training.length import default_epochs
from ssvi.training.likelihood_names import mean_nll
from ssvi.training.network_size import check_network_size
from ssvi.training.new_files import nothing_left_behind
from ssvi.training.pretrained import start_from
from ssvi.training.processes import check_processes
from ssvi.training.progress import Progress
from ssvi.training.recipe import AUGMENTATIONS, Recipe, RecipeError
from ssvi.training.recipe_of_run import refuse_changes
from ssvi.training.recipe_paths import with_moved_data, with_whole_paths
from ssvi.training.run import Run, wrapped
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.tasks import Task, task_of
from ssvi.training.trusted_code import UntrustedCodeError, code_in, trust
from ssvi.training.warm_start import Phase, plain_phase, second_phase, with_method


def start(recipe: Recipe, out: str | Path, data_dir: str | Path | None = None) -> Run:
    """A new run in the folder `out`, which is made when everything has been checked; an error leaves nothing behind."""
    recipe = with_whole_paths(with_moved_data(recipe, data_dir))
    folder = RunFolder(out)
    try:
        folder.refuse_a_second_run()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise RunError(f"{out} cannot be used: {error.strerror}. Choose another folder with --out") from error
    recipe, task = _checked(folder, recipe, data_dir)
    run = _begin(folder, recipe, task)
    if distributed.rank() == 0:
        with nothing_left_behind(folder.path):
            folder.create(recipe, distributed.ranks())
            run.task.keep(folder)
            _trust(recipe)
    return run


def check(recipe: Recipe, data_dir: str | Path | None = None) -> None:
    """Everything that `start` looks at before it makes a folder. Nothing is written, and torch stays as it was."""
    threads = torch.get_num_threads()
    try:
        with torch.random.fork_rng():
            _checked(RunFolder("."), with_whole_paths(with_moved_data(recipe, data_dir)), data_dir)
    finally:
        torch.set_num_threads(threads)


def _checked(folder: RunFolder, recipe: Recipe, data_dir: str | Path | None) -> tuple[Recipe, Task]:
    """A recipe whose epochs are known, and its data, with which a run can be trained: one batch has passed."""
    check_processes(recipe)
    task = _task(recipe, data_dir)
    train = _splits(recipe, task.data)[0]
    check_examples(recipe, task.data, train)
    if not recipe.epochs:
        recipe = recipe.replace(epochs=default_epochs(max(1, len(_batches(recipe, task.data, train)))))
    check_network_size(recipe, task)
    try_first_step(_begin(folder, recipe, task))  # thrown away: the run that counts sets the seeds anew
    if recipe.warm_start:
        try_first_step(with_method(_begin(folder, recipe, task)))
    return recipe, task


def resume(out: str | Path, data_dir: str | Path | None = None, epochs: int | None = None) -> tuple[Run, list[str]]:
    """The run in the folder `out`, where it was; and what was wrong with newer checkpoints.

    `epochs` trains it longer than its recipe says, or shorter (`ssvi.training.longer`).
    """
    folder = RunFolder(out)
    if distributed.rank() == 0:
        folder.take_lock()
    recipe = folder.recipe
    check_processes(recipe)
    state, damaged = folder.load_checkpoint() if folder.checkpoints() else (None, [])
    if state is not None:
        refuse_changes(folder.path, recipe, state)
    new = recipe if epochs is None else longer.with_epochs(folder, recipe, epochs, state)
    if state is not None and new != recipe and "recipe" not in state:
        state = longer.with_recipe(folder, recipe, state)
    run = _make(folder, new, data_dir)
    run.task.check(folder)
    if state is not None:
        if state["progress"]["epoch"] >= new.warm_epochs:
            run = with_method(run)  # its weights will be loaded
        run.progress = longer.restore(folder, new, state, run.method, run.training, run.first_epoch)
    if new != recipe and distributed.rank() == 0:
        with folder.writing():
            folder.take_recipe(new)
    return run, damaged


def _trust(recipe: Recipe) -> None:
    """Who trains with code of her own may open what comes of it."""
    try:
        trust(*code_in(recipe.values))
    except UntrustedCodeError as error:
        warnings.warn(f"{error}: until then, this run opens only after `ssvi trust`", stacklevel=2)


def _make(folder: RunFolder, recipe: Recipe, data_dir: str | Path | None) -> Run:
    """The run at its beginning."""
    return _begin(folder, recipe, _task(recipe, data_dir))


def _task(recipe: Recipe, data_dir: str | Path | None) -> Task:
    """The data; and the device and the threads, which are asked for first, because they take less time to be refused."""
    device_of(recipe.device)
    if recipe.threads:
        torch.set_num_threads(recipe.threads)
    return task_of(recipe, data_dir)


def _begin(folder: RunFolder, recipe: Recipe, task: Task) -> Run:
    """The run at its beginning. The order of the random draws is part of the format of a run."""
    device = device_of(recipe.device)
    torch.manual_seed(recipe.seed)
    train, validation = _splits(recipe, task.data)
    batches = _batches(recipe, task.data, train)
    job = _job(folder, recipe, task, train, len(batches), device)
    method, training = _first_phase(recipe, job, device)
    distributed.seed_noise(recipe.seed)
    progress = Progress(indices=epoch_end.indices(training.net))
    return Run(
        folder, recipe, task, validation, batches, method, training, wrapped(recipe, training.net), progress,
        distributed.ranks(), second_phase(recipe, job, device) if recipe.warm_start else None,
    )  # fmt: skip


def _first_phase(recipe: Recipe, job: Job[Any], device: torch.device) -> Phase:
    """The method, or the plain training before it."""
    if recipe.warm_start:
        return plain_phase(recipe, job, device)
    method = methods.get(recipe.method)
    try:
        return method, begin(method, job, device)
    except ValueError as error:  # the library's own words: they name the argument, the value and the remedy
        raise RecipeError(str(error)) from error


def _splits(recipe: Recipe, data: TrainingData) -> tuple[Examples, Examples]:
    """The examples for training and for validation. The latter do not depend on how many of the others are used."""
    train, validation = data.split_validation(recipe.validation, recipe.seed)
    if recipe.examples > len(train):
        raise RecipeError(
            f"examples={recipe.examples} are more than the {len(train)} that validation leaves: take fewer, or 0 for all"
        )
    if 0 < recipe.examples < len(train):
        _, train = train.split(recipe.examples / len(train), recipe.seed)
    return train, validation


def _batches(recipe: Recipe, data: TrainingData, train: Examples) -> Batches:
    fills_a_batch = len(train) >= recipe.batch_size  # else the only batch, which is not full, would be left out
    equal_shares = distributed.ranks() > 1  # the mean over processes is that of the batch only if all have as many
    return Batches(
        train, recipe.batch_size, normalise=data.normalise, seed=recipe.seed, augment=AUGMENTATIONS[recipe.augment],
        drop_last=fills_a_batch or equal_shares, rank=distributed.rank(), ranks=distributed.ranks(),
    )  # fmt: skip


def _job(
    folder: RunFolder, recipe: Recipe, task: Task, train: Examples, steps_per_epoch: int, device: torch.device
) -> Job[Any]:
    """What the method is told of this run."""

    def fresh() -> nn.Module:
        net = task.network()
        return start_from(net, recipe.pretrained) if recipe.pretrained else net

    def inputs() -> Iterator[Tensor]:
        augment = AUGMENTATIONS[recipe.augment]  # BatchNorm's statistics must be of images like those of the training
        batches = Batches(train, recipe.batch_size, normalise=task.data.normalise, seed=recipe.seed, augment=augment)
        return (x.to(device) for x, _ in batches)

    return Job(
        settings=recipe.settings, lr=recipe.lr, epochs=recipe.epochs - recipe.warm_epochs, per_epoch=recipe.per_epoch,
        seed=recipe.seed,
        train_size=len(train), steps_per_epoch=steps_per_epoch, fresh=fresh, inputs=inputs,
        states=StateFolder(folder.path / STATES, fresh), micro_batches=recipe.micro_batches, nll=mean_nll(task.likelihood),
    )  # fmt: skip
