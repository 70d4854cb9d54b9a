"""`ssvi ensemble`: finished runs of one recipe that differ in their seeds become the members of one finished run.

Nothing is trained. The new run has the networks of all of them, bit for bit, their logs one after the other, and numbers on
the test set of its own. It says in members.json where its networks came from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ssvi import methods
from ssvi.data import DataSet
from ssvi.inference.evaluate import Evaluation, NumberEvaluation
from ssvi.inference.predict import Mixture
from ssvi.training import model_file
from ssvi.training.errors import OccupiedError, RunError
from ssvi.training.model_header import Header
from ssvi.training.progress import EpochLine
from ssvi.training.recipe import Recipe
from ssvi.training.recipe_of_run import differences, require_run
from ssvi.training.records import to_plain
from ssvi.training.run import NO_TEST, in_order
from ssvi.training.run_files import MEMBERS
from ssvi.training.run_folder import RunFolder
from ssvi.training.tasks import Task, task_of

MAY_DIFFER = {"seed", "threads", "device", "checkpoint_steps", "record_iou"}
"""The settings in which the runs may differ."""


@dataclass(frozen=True)
class Member:
    """Where a network came from: the path of its run, and its seed."""

    run: str
    seed: int


def join_runs(
    paths: Sequence[str | Path], out: str | Path, data_dir: str | Path | None = None
) -> Evaluation | NumberEvaluation | None:
    """Make one finished run in the folder `out`, whole or not at all; its numbers on the test set, if there is one."""
    folders = [RunFolder(path) for path in paths]
    header = _checked(folders)
    recipe = _ensemble_recipe(folders)
    task = task_of(recipe, data_dir)
    recipe = recipe.replace(validation=_validation(recipe, task))
    net = Mixture(model_file.load(folder.path) for folder in folders).eval()
    batches = in_order(task.data, task.data.test)
    evaluation = task.evaluate(net, batches, recipe.samples) if len(batches.split) else None
    with _appears_whole(Path(os.path.abspath(out))) as folder:
        folder.create(recipe)
        members = [Member(os.path.abspath(each.path), each.recipe.seed) for each in folders]
        folder.write_text(MEMBERS, {"members": to_plain(members)})
        for line in _log(folders):
            folder.log.append(line)
        folder.write_text("result.json", asdict(evaluation) if evaluation else NO_TEST)
        model = folder.path / "model.safetensors"
        model_file.save(net, model, recipe=recipe.values, about=header.about, table=header.table)
    return evaluation


def _ensemble_recipe(folders: Sequence[RunFolder]) -> Recipe:
    """The recipe of an ensemble of such networks, with the seed of the first."""
    recipe = folders[0].recipe
    known = {members_by: name for name in methods.NAMES if (members_by := methods.about(name).members_by)}
    if recipe.method not in known:
        raise RunError(
            f"{folders[0].path} was trained by method={recipe.method!r}: an ensemble has members by {', '.join(known)}"
        )
    return recipe.replace(method=known[recipe.method], members=len(folders))


def _validation(recipe: Recipe, task: Task) -> float:
    """The share for validation: none, where what one run held out was for another one to train on."""
    own = isinstance(task.data, DataSet) and task.data.validation is not None
    return recipe.validation if own else 0.0


def _log(folders: Sequence[RunFolder]) -> list[EpochLine]:
    """The epochs of all runs, as if they had been trained one after the other; none if one of the logs is gone."""
    logs = [folder.metrics() for folder in folders]
    if not all(logs):
        return []
    epochs, steps = len(logs[0]), logs[0][-1].step
    return [
        replace(line, epoch=line.epoch + number * epochs, step=line.step + number * steps)
        for number, lines in enumerate(logs)
        for line in lines
    ]


# ---- may they be one? ------------------------------------------------------------------------------------------------


def _checked(folders: Sequence[RunFolder]) -> Header:
    """The header of the first model file, if the networks may be members of one ensemble."""
    if len(folders) < 2:
        raise RunError("an ensemble has two runs or more: name them, `ssvi ensemble RUN RUN ... --out NEW`")
    for folder in folders:
        _require_finished(folder)
    first = folders[0].recipe
    headers = [model_file.read(folder.path / "model.safetensors")[0] for folder in folders]
    for folder, header in zip(folders[1:], headers[1:], strict=True):
        recipe = folder.recipe
        if changed := {k: v for k, v in differences(first, recipe).items() if k not in MAY_DIFFER}:
            listed = ", ".join(f"{name} = {old!r} and {new!r}" for name, (old, new) in changed.items())
            raise RunError(
                f"{folders[0].path} and {folder.path} differ in {listed}: members may differ in the seed alone"
            )
        if header.about != headers[0].about or header.table != headers[0].table:
            raise RunError(
                f"{folders[0].path} and {folder.path} were trained on other data: name runs on the same data"
            )
    _refuse_twins(folders)
    _refuse_other_rows(first)
    return headers[0]


def _require_finished(folder: RunFolder) -> None:
    require_run(folder.path)
    if not folder.finished:
        raise RunError(f"{folder.path} is not finished: go on with `ssvi train --resume {folder.path}`")


def _refuse_twins(folders: Sequence[RunFolder]) -> None:
    """An error if two runs have the same seed: they have the same network, or nearly so."""
    seen: dict[int, RunFolder] = {}
    for folder in folders:
        twin = seen.setdefault(folder.recipe.seed, folder)
        if twin is not folder:
            raise RunError(f"{twin.path} and {folder.path} have the same seed={folder.recipe.seed}: leave one out")


def _refuse_other_rows(recipe: Recipe) -> None:
    """An error if each seed held out other rows of a table: those of one run were for another one to train on."""
    if recipe.is_table and (recipe.validation or (recipe.test_share and not recipe.test)):
        raise RunError(
            f"each seed holds out other rows of {recipe.data}, so nothing could be promised or tested: train the runs with "
            "--validation 0 and --test FILE or --test-share 0, or all members in one run by an ensemble as --method"
        )


@contextmanager
def _appears_whole(out: Path) -> Iterator[RunFolder]:
    """Inside, a run folder with another name; afterwards it is `out`. An error or a kill leaves no `out` behind."""
    RunFolder(out).refuse_a_second_run()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OccupiedError(f"--out={out} is there already: choose another folder")
    folder = RunFolder(out.with_name(f".{out.name}.{os.getpid()}"))
    try:
        yield folder
        folder.lock.free()
        folder.path.replace(out)
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error}. Choose another folder with --out") from error
    finally:
        folder.lock.free()
        shutil.rmtree(folder.path, ignore_errors=True)
