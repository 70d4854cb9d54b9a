"""recipe.toml of a run: what was changed behind its back is refused, with the names of the settings."""

import shutil
import tomllib
from pathlib import Path

import pytest
from small_runs import finished

from ssvi.evaluation import FinishedRun
from ssvi.training import recipe_files
from ssvi.training.checkpoint_files import newest_checkpoint, save_checkpoint
from ssvi.training.errors import RunError, RunFolderWarning
from ssvi.training.recipe_of_run import FILE, SEAL, differences, read_recipe, write_recipe
from ssvi.training.start import resume, start
from ssvi.training.trusted_code import UntrustedCodeError

SMALL = recipe_files.load("digits").replace(epochs=2, width=4)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run with a checkpoint."""
    run = start(SMALL, tmp_path / "run")
    run.save()
    return tmp_path / "run"


def edit(folder: Path, old: str, new: str) -> None:
    text = (folder / FILE).read_text()
    assert old in text
    (folder / FILE).write_text(text.replace(old, new))


def test_it_comes_back_and_is_toml(folder):
    assert read_recipe(folder) == SMALL
    assert tomllib.loads((folder / FILE).read_text())["width"] == 4


def test_an_edited_recipe_is_refused_with_the_settings_that_differ(folder):
    edit(folder, f"lr = {SMALL.lr}", "lr = 0.01")
    edit(folder, "width = 4", "width = 5")
    changes = rf"width = 4 -> 5, lr = {SMALL.lr} -> 0\.01"
    with pytest.raises(
        RunError, match=rf"recipe\.toml was changed after the run began: {changes}\. Put back .*--epochs N"
    ):
        resume(folder)
    edit(folder, "lr = 0.01", f"lr = {SMALL.lr}")
    edit(folder, "width = 5", "width = 4")
    assert resume(folder)[0].recipe == SMALL


def test_more_epochs_by_hand_are_refused_too(folder):
    edit(folder, "epochs = 2", "epochs = 3")
    with pytest.raises(RunError, match=r"epochs = 2 -> 3\..*`ssvi train --resume .*run --epochs N`"):
        resume(folder)


def test_a_recipe_without_the_line_of_the_seal_is_compared_with_the_checkpoint(folder):
    (folder / FILE).write_text(SMALL.replace(epochs=3).to_toml())
    with pytest.raises(RunError, match=r"epochs = 2 -> 3"):
        resume(folder)
    (folder / FILE).write_text(SMALL.to_toml())
    assert resume(folder)[0].recipe == SMALL


def test_the_recipe_of_another_run_is_refused(folder):
    write_recipe(folder, SMALL.replace(seed=7))
    with pytest.raises(RunError, match=r"seed = 0 -> 7"):
        resume(folder)


def test_a_change_that_changes_no_setting_is_told_and_the_recipe_of_the_checkpoint_is_used(folder):
    edit(folder, "width = 4", "width  =  4  # narrow")
    with pytest.warns(RunFolderWarning, match=r"recipe\.toml was changed .* its settings are still those of the run"):
        assert resume(folder)[0].recipe == SMALL


def test_a_finished_run_is_compared_with_the_model_file(tmp_path):
    folder = shutil.copytree(finished(), tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))
    edit(folder, "validation = 0.1", "validation = 0.2")
    with pytest.raises(RunError, match=r"validation = 0\.1 -> 0\.2"):
        FinishedRun(folder)


def test_a_changed_recipe_that_nothing_confirms_is_refused(tmp_path):
    start(SMALL, tmp_path / "run")
    edit(tmp_path / "run", "width = 4", "width = 5")
    with pytest.raises(RunError, match=r"recipe\.toml is damaged or was changed: its SHA-256 does not match"):
        resume(tmp_path / "run")


def test_the_format_of_a_later_version_is_refused(folder, monkeypatch):
    later = b"# ssvi recipe, format 9, sha256 "
    monkeypatch.setattr("ssvi.training.recipe_of_run.SEAL", type(SEAL)(later))
    write_recipe(folder, SMALL)
    monkeypatch.undo()
    with pytest.raises(RunError, match=r"recipe\.toml is of another version of ssvi: use the ssvi that wrote it"):
        read_recipe(folder)


def test_differences_are_of_both_recipes():
    changed = differences(SMALL, SMALL.replace(method="deterministic"))
    assert changed["method"] == ("ssvi", "deterministic")
    assert changed["prior_sigma"] == (SMALL.values["prior_sigma"], None)
    assert differences(SMALL, SMALL) == {}


def test_the_recipe_in_a_checkpoint_of_a_stranger_runs_no_code(folder):
    state = newest_checkpoint(folder)[0]
    save_checkpoint(folder, 0, state | {"recipe": 'method = "strange.code"\n'})
    with pytest.raises(UntrustedCodeError, match=r"the checkpoint names code .*strange\.code"):
        resume(folder)
