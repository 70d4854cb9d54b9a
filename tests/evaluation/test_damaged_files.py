"""Flip a bit of any file of a run folder: the file is named, and never used."""

import random
import shutil
import warnings
from pathlib import Path

import pytest
from small_runs import finished
from small_tables import finished_table

from ssvi.errors import UserError
from ssvi.evaluation import FinishedRun, TableRun
from ssvi.evaluation.results import Estimate
from ssvi.training.checkpoint_files import newest_checkpoint, read_checkpoint
from ssvi.training.errors import RunFolderWarning
from ssvi.training.iou_log import IoULine, IoULog
from ssvi.training.model_file import read
from ssvi.training.run_files import RUN_FILES, kind_of
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume
from ssvi.training.trackers import keep_id, known_id

FLIPS = 150
"""Flipped bits per file, besides those of its first bytes."""
FIRST = 120

RESULTS = (
    "threshold.json", "threshold-error.json", "evaluation.json", "ood-noise.json", "corruption.json", "validation.json",
)  # fmt: skip
READERS = {
    "recipe.toml": lambda run: run.folder.recipe,
    "machine.json": lambda run: run.folder.origin,
    "metrics.jsonl": lambda run: run.folder.metrics(),
    "result.json": lambda run: run.folder.result,
    "model.safetensors": lambda run: read(run.folder.path / "model.safetensors"),
    "tracking.json": lambda run: known_id(run.folder, "mlflow"),
    **{name: (lambda run, name=name: run.read(Estimate, name)) for name in RESULTS},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with a file of every result."""
    run = FinishedRun(shutil.copytree(finished(), tmp_path_factory.mktemp("damaged") / "run"))
    for name in RESULTS:
        run.write(name, Estimate(0.5, 0.4, 0.6))
    keep_id(run.folder, "mlflow", "7")
    return run


def flips(content: bytes, seed: int):
    """The content with one bit flipped: in each of its first bytes, in the last one, and in many others."""
    choose = random.Random(seed)
    for i in [
        *range(min(FIRST, len(content))),
        len(content) - 1,
        *(choose.randrange(len(content)) for _ in range(FLIPS)),
    ]:
        damaged = bytearray(content)
        damaged[i] ^= 1 << choose.randrange(8)
        yield i, bytes(damaged)


def outcome(reader, run, name):
    """What the reader does: "refused" or "told", and in both cases it names the file; or what it has read."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", RunFolderWarning)
        try:
            value = reader(run)
        except UserError as error:
            return "refused" if name in str(error) else str(error)
    if told and value in (None, run.recipe):
        return "told" if name in str(told[0].message) else str(told[0].message)
    return value


@pytest.mark.parametrize("name", READERS)
def test_a_flipped_bit_is_named_and_the_file_not_used(name, run):
    file = run.folder.path / name
    intact = file.read_bytes()
    assert outcome(READERS[name], run, name) is not None
    try:
        for i, damaged in flips(intact, seed=0):
            file.write_bytes(damaged)
            assert outcome(READERS[name], run, name) in ("refused", "told"), (name, i)
    finally:
        file.write_bytes(intact)


def test_a_model_file_remains_valid_for_other_programs(run):
    from safetensors.torch import load_file

    assert (
        load_file(run.folder.path / "model.safetensors").keys() == read(run.folder.path / "model.safetensors")[1].keys()
    )


def test_a_flipped_bit_of_a_checkpoint_is_named_and_the_one_before_it_is_used(tmp_path):
    folder = shutil.copytree(finished(), tmp_path / "run")
    older, newest = RunFolder(folder).checkpoints()
    intact, expected = newest.read_bytes(), read_checkpoint(older)["progress"]["step"]
    for i, damaged in flips(intact, seed=1):
        newest.write_bytes(damaged)
        state, told = newest_checkpoint(folder)
        assert (state["progress"]["step"], newest.name in told[0]) == (expected, True), i


def test_a_flipped_bit_of_the_record_of_the_criteria_is_named(tmp_path):
    log, agree = IoULog(tmp_path), [[1.0, 0.5], [0.5, 1.0]]
    log.append([IoULine(t, 0, 5 * t, 3, ["abs_mu", "snr"], agree, agree) for t in (1, 2)])
    intact, lines = log.file.read_bytes(), log.read()
    for i, damaged in flips(intact, seed=4):
        log.file.write_bytes(damaged)
        if i == len(intact) - 1:  # without its end the last line is one that a kill has cut short
            assert log.read() == lines[:1]
        else:
            assert outcome(lambda _: log.read(), FinishedRun, "iou.jsonl") == "refused", i


def test_a_flipped_bit_of_a_kept_network_is_named(tmp_path):
    folder = shutil.copytree(finished("ensemble", members=2), tmp_path / "run")
    file: Path = sorted((folder / "states").iterdir())[0]
    intact = file.read_bytes()
    for i, damaged in flips(intact, seed=2):
        file.write_bytes(damaged)
        assert outcome(lambda run: read(file), FinishedRun, file.name) == "refused", i


def test_a_flipped_bit_of_what_was_learnt_of_a_table_is_named(tmp_path):
    folder = shutil.copytree(finished_table(), tmp_path / "run")
    task = TableRun(FinishedRun(folder)).run.recipe
    file = folder / "table.json"
    intact = file.read_bytes()
    run, _ = resume(folder)
    assert run.recipe == task
    for i, damaged in flips(intact, seed=3):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"table\.json"):
            run.task.check(run.folder)
        assert i < len(intact)


def test_every_file_that_is_read_is_tested_here():
    others = {"checkpoints/step-*.pt", "states/epoch-*.safetensors", "table.json"}
    others |= {"iou.jsonl"}
    others |= {"members.json"}  # is there or not; what it says is for people
    tested = {kind_of(Path(name)).name for name in READERS} | others
    assert tested == {kind.name for kind in RUN_FILES if kind.formats}
