"""`ssvi train --resume RUN --epochs N`: the schedules of N epochs from the next step on, and nothing stale."""

import shutil
from pathlib import Path

import pytest
from small_runs import finished, train

from ssvi import methods
from ssvi.training import longer, recipe_files, run_files
from ssvi.training.errors import RunError
from ssvi.training.run import finish
from ssvi.training.run_folder import RunFolder
from ssvi.training.start import resume, start

SMALL = recipe_files.load("digits").replace(
    epochs=2, width=4, batch_size=128, every=3, lr=0.4, prior_sigma=1.0, h0=0.5, checkpoint_steps=5
)


@pytest.fixture(scope="module")
def short(tmp_path_factory) -> Path:
    """A finished run of two epochs."""
    return train(SMALL, tmp_path_factory.mktemp("short") / "run")


@pytest.fixture
def folder(short, tmp_path) -> Path:
    return shutil.copytree(short, tmp_path / "run")


def end(folder: Path, **how) -> bytes:
    """Go on to the end; returns the model."""
    run, _ = resume(folder, **how)
    run.train()
    finish(run)
    return (folder / "model.safetensors").read_bytes()


def test_the_schedules_are_those_of_the_longer_run_at_this_step(folder, tmp_path):
    other = start(SMALL.replace(epochs=4), tmp_path / "other")
    whole: list = []
    other.train(whole.append)
    run, _ = resume(folder, epochs=4)
    steps: list = []
    run.train(steps.append)
    assert [s.step for s in steps] == [s.step for s in whole[len(whole) // 2 :]]
    assert [s.lr for s in steps] == [s.lr for s in whole[len(whole) // 2 :]]
    assert [s.rate for s in steps] == [s.rate for s in whole[len(whole) // 2 :]]
    assert sum(s.moved for s in steps) > 0, "gamma was frozen at the end of two epochs, and moves again"


def test_the_first_step_has_the_learning_rate_of_the_new_schedule(folder):
    old, _ = resume(folder)
    before = [group["lr"] for group in old.training.optimizer.param_groups]
    run, _ = resume(folder, epochs=5)
    scheduler, now = run.training.scheduler, [group["lr"] for group in run.training.optimizer.param_groups]
    assert now == [base * scheduler.lr_lambdas[0](run.progress.step) for base in scheduler.base_lrs]
    assert now == scheduler.get_last_lr()
    assert now != before


def test_a_kill_at_any_moment_leaves_a_folder_from_which_it_goes_on(folder, tmp_path, monkeypatch):
    twin, third = shutil.copytree(folder, tmp_path / "twin"), shutil.copytree(folder, tmp_path / "third")
    expected = end(folder, epochs=4)
    resume(twin, epochs=4)  # killed before its first checkpoint
    assert RunFolder(twin).recipe.epochs == 4
    assert end(twin) == expected
    run, _ = resume(third, epochs=4)
    run.train(lambda numbers: run.stop("a test") if numbers.step == 27 else None)
    assert end(third) == expected
    assert RunFolder(third).metrics()[-1].epoch == 3


def test_a_kill_before_the_recipe_is_written_leaves_the_shorter_run(folder, short, monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ssvi.training.run_folder.write_recipe", die)
    with pytest.raises(KeyboardInterrupt):
        resume(folder, epochs=4)
    monkeypatch.undo()
    assert not RunFolder(folder).finished
    assert end(folder) == (short / "model.safetensors").read_bytes()


def test_what_is_about_the_network_before_is_removed_and_the_network_last(folder, monkeypatch):
    names = [kind.name.replace("*", "noise") for kind in run_files.RUN_FILES if kind.of_trained_network]
    for name in names:
        (folder / name).touch()
    removed = []
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda self, **how: (removed.append(self.name), unlink(self, **how)))
    run_files.remove_trained_network(folder)
    assert sorted(removed) == sorted(names)
    assert removed[-1] == "model.safetensors"
    assert (folder / "recipe.toml").is_file()
    assert (folder / "metrics.jsonl").is_file()


def test_fewer_epochs_than_are_trained_are_refused_and_nothing_is_changed(folder):
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")}
    with pytest.raises(RunError, match=r"--epochs=1: .*run has trained 2 epochs already. Give 2 or more"):
        resume(folder, epochs=1)
    assert {file: file.read_bytes() for file in before} == before


def test_a_run_may_be_brought_to_an_early_end(tmp_path):
    run = start(SMALL, tmp_path / "run")
    run.train(lambda numbers: run.stop("a test") if numbers.step == 14 else None)
    end(tmp_path / "run", epochs=2)
    again, _ = resume(tmp_path / "run", epochs=5)
    again.train(lambda numbers: again.stop("a test"))
    end(tmp_path / "run", epochs=3)
    assert len(RunFolder(tmp_path / "run").metrics()) == RunFolder(tmp_path / "run").recipe.epochs == 3


def test_nothing_else_of_the_recipe_changes(folder):
    assert resume(folder, epochs=3)[0].recipe == SMALL.replace(epochs=3)


def test_a_run_that_was_too_short_for_updates_gets_them(tmp_path):
    folder = train(SMALL.replace(every=20, epochs=1), tmp_path / "run")
    end(folder, epochs=4)
    assert [line.moved > 0 for line in RunFolder(folder).metrics()] == [False, True, False, False], "at step 20 of 40"


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_of_an_earlier_version_is_trained_longer(killed, tmp_path):
    folder = shutil.copytree(Path(__file__).parent / "earlier_runs" / "ssvi-interrupted", tmp_path / "run")
    epochs = RunFolder(folder).recipe.epochs
    if killed:
        resume(folder, epochs=epochs + 1)
    run, _ = resume(folder, epochs=epochs + 1)
    rates: list = []
    run.train(lambda numbers: (rates.append(numbers.lr), run.stop("a test")))
    share = run.training.scheduler.lr_lambdas[0]
    assert rates == [run.training.scheduler.base_lrs[0] * share(47)], "of the step that was made"
    assert RunFolder(folder).recipe.epochs == epochs + 1


FIXED = [name for name in methods.NAMES if methods.about(name).fixed_epochs]


def test_the_methods_whose_past_depends_on_the_epochs():
    assert [
        name for name in methods.NAMES if name in ("ssvi-ensemble", "ensemble", "mbnn", "aeb", "snr-finetune")
    ] == FIXED


@pytest.mark.parametrize("method", FIXED)
def test_they_are_refused(method, tmp_path):
    recipe = recipe_files.load("digits", method).replace(epochs=20)
    with pytest.raises(RunError, match=rf"a run of method '{method}' cannot be trained longer.*Start a new run"):
        longer.with_epochs(RunFolder(tmp_path), recipe, 21, None)
    assert longer.with_epochs(RunFolder(tmp_path), recipe, 20, None) == recipe


@pytest.mark.parametrize("method", ["vi", "rigl", "vd", "ivon", "ssvi-lrt"])
def test_other_methods_go_on(method, tmp_path):
    folder = shutil.copytree(finished(method), tmp_path / "run")
    end(folder, epochs=3)
    assert len(RunFolder(folder).metrics()) == 3


def test_batches_of_an_update_that_is_under_way(tmp_path):
    """The sums of an update over several batches are of the rate before: the new rate moves another number of weights."""
    run = start(SMALL.replace(mc_steps=3, every=4), tmp_path / "run")
    run.train(lambda numbers: run.stop("a test") if numbers.step == 7 else None)
    assert run.training.after_step.state.state_dict()["sums"], "an update is under way"
    end(tmp_path / "run", epochs=6)
    assert len(RunFolder(tmp_path / "run").metrics()) == 6
