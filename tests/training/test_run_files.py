"""The table of the files in a run folder: it is that of the docs, and that of what commands leave behind."""

import os
import stat
from pathlib import Path

import pytest
from command_line import run_command

from ssvi.training.run_files import RUN_FILES, kind_of

ROOT = Path(__file__).parents[2]
TRAIN = ("train", "digits", "--epochs", 1, "--width", 4, "--threads", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A run with all results, written with an unusual umask."""
    out, cache = tmp_path_factory.mktemp("runs") / "run", tmp_path_factory.mktemp("data")
    before = os.umask(0o007)
    try:
        run_command(*TRAIN, "--method", "ssvi-ensemble", "--members", 2, "--every", 3, "--record-iou", "--out", out)
        run_command("evaluate", out)
        run_command("ood", out, "--data", "noise")
        run_command("corrupt", out, "--images", 3, "--no-cache", "--samples", 1, "--data-dir", cache)
        run_command("report", out)
    finally:
        os.umask(before)
    return out


def files(folder: Path) -> list[Path]:
    return sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())


def test_every_file_of_a_run_is_in_the_table(folder):
    kinds = {file: kind_of(file) for file in files(folder)}
    assert [str(file) for file, kind in kinds.items() if kind is None] == []
    of_tables = {"table.json"}
    of_many_runs = {"validation.json", "pruned.json", "stdout.log", "stderr.log", "evaluation.log"}
    of_options = {"members.json", "tensorboard/*", "tracking.json", "wandb/*"}
    elsewhere = of_tables | of_many_runs | of_options | {"threshold-error.json", ".lock.json"}
    assert {kind.name for kind in kinds.values()} == {kind.name for kind in RUN_FILES} - elsewhere


def test_what_is_no_file_of_a_run_is_not_in_it():
    for name in ("notes.txt", "model.safetensors.part", "deeper/recipe.toml", "checkpoints/notes.txt"):
        assert kind_of(Path(name)) is None


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_every_file_has_the_mode_of_the_umask(folder):
    modes = {str(file): stat.S_IMODE((folder / file).stat().st_mode) for file in files(folder)}
    assert {name: oct(mode) for name, mode in modes.items() if mode != 0o660} == {}


def test_the_docs_have_the_same_table():
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    for kind in RUN_FILES:
        formats = ", ".join(map(str, kind.formats)) or "-"
        assert f"| `{kind.name}` | {kind.holds} | {kind.writers} | {formats} |" in page, kind.name
