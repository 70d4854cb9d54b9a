"""Training runs: the same numbers again, and on after any interruption, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from small_runs import train

import ssvi
from ssvi.training import checkpoint_files, epoch_end, model_file, recipe_files, recipe_of_run, sealed
from ssvi.training.epoch_end import TrainingError
from ssvi.training.processes import NoiseWarning
from ssvi.training.progress import Progress, StepNumbers
from ssvi.training.records import to_plain
from ssvi.training.run import finish, in_order
from ssvi.training.run_folder import RunError, RunFolder
from ssvi.training.start import resume, start

CHANGES = {
    "epochs": 4, "width": 4, "batch_size": 128, "every": 3, "checkpoint_steps": 2, "lr": 0.4, "prior_sigma": 1.0,
    "h0": 0.5, "record_iou": True,
}  # fmt: skip
SMALL = recipe_files.load("digits").replace(**CHANGES)
TIMES = ("seconds", "images_per_second", "peak_memory_bytes")


def lines(folder: Path) -> list[dict]:
    return [{k: v for k, v in to_plain(line).items() if k not in TIMES} for line in RunFolder(folder).metrics()]


def assert_same_run(a: Path, b: Path) -> None:
    assert lines(a) == lines(b)
    assert (a / "result.json").read_text() == (b / "result.json").read_text()
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    assert (a / "iou.jsonl").read_bytes() == (b / "iou.jsonl").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nothing interrupted."""
    return train(SMALL, tmp_path_factory.mktemp("whole") / "run")


def test_the_same_recipe_and_seed_give_the_same_numbers(whole, tmp_path):
    assert_same_run(whole, train(SMALL, tmp_path / "again"))
    other = train(SMALL.replace(seed=1), tmp_path / "other")
    assert lines(other) != lines(whole)


def test_the_log_tells_what_happened(whole):
    log = lines(whole)
    assert [line["epoch"] for line in log] == [0, 1, 2, 3]
    assert log[-1]["nll"] < log[0]["nll"]
    assert log[0]["moved"] > 0
    assert log[-1]["iou"] == 1.0, "gamma is frozen in the last quarter"
    assert 0 < log[0]["iou"] < 1
    assert {line["beta"] for line in log} == {SMALL.values["temperature"]}, (
        "natural gradients multiply the KL by the temperature alone"
    )
    assert set(log[0]["sigma_drift"]) == {"0", "4", "9", "11"}
    assert all(line["loss"] > line["nll"] for line in log)
    origin = RunFolder(whole).origin
    assert (origin.ssvi, origin.torch, origin.processes) == (ssvi.__version__, torch.__version__, 1)
    assert origin.processor
    assert RunFolder(whole).recipe == SMALL


def test_the_log_has_the_beta_of_a_warm_up(tmp_path):
    log = lines(train(SMALL.replace(method="ssvi-lrt", lr=0.05, beta_max=0.3), tmp_path / "run"))
    steps = log[0]["step"]
    assert log[1]["beta"] == pytest.approx(0.3 * (2 * steps - 1) / (2 * steps))
    assert log[3]["beta"] == pytest.approx(0.3)


@pytest.mark.parametrize("method", ["ssvi", "vi", "deterministic", "static"])
def test_a_run_loads_as_a_ready_network(method, tmp_path):
    recipe = SMALL.replace(method=method, epochs=1)
    run = start(recipe, tmp_path / "run")
    run.train()
    result = finish(run)
    net = model_file.load(tmp_path / "run")
    assert not net.training
    x = run.data.normalise(run.data.test.x)
    torch.manual_seed(recipe.seed)
    again = ssvi.evaluate(net, in_order(run.data, run.data.test), recipe.samples)
    assert again.nll == pytest.approx(result.nll, rel=1e-6)
    assert net(x).shape == (len(x), 10)
    if method in ("ssvi", "static"):
        sparse = [layer.posterior for _, layer in ssvi.layers(net) if layer.density < 1]
        assert sum(p.s for p in sparse) == round(recipe.values["density"] * sum(p.d for p in sparse))


def run_in_a_process(folder: Path, *extra: str) -> subprocess.Popen:
    fresh = [] if (folder / "recipe.toml").exists() else ["--out", str(folder), *flags()]
    command = [sys.executable, "-m", "ssvi", "train", *(fresh or ["--resume", str(folder)]), *extra, "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def flags() -> list[str]:
    given = {"--" + name.replace("_", "-"): value for name, value in CHANGES.items()}
    return [word for flag, value in given.items() for word in ([flag] if value is True else [flag, str(value)])]


def kill_and_resume(folder: Path, seed: int, kills: int) -> int:
    """Kill -9 at random moments, then let it finish; returns how many kills hit a run in progress."""
    moments, hit = random.Random(seed), 0
    for _ in range(kills):
        process = run_in_a_process(folder)
        deadline = time.monotonic() + 30
        while not list(folder.glob("checkpoints/*")) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.01)  # importing torch is not the moment that we are after
        time.sleep(moments.uniform(0.0, 0.25))
        process.kill()
        process.communicate()
        hit += process.returncode == -signal.SIGKILL
    process = run_in_a_process(folder)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    return hit


def test_kill_9_at_random_moments(whole, tmp_path):
    hit = kill_and_resume(tmp_path / "run", seed=0, kills=2)
    assert hit >= 1
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 6))
def test_kill_9_at_many_random_moments(whole, tmp_path, seed):
    assert kill_and_resume(tmp_path / "run", seed, kills=8) >= 1
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(which, whole, tmp_path):
    run = start(SMALL, tmp_path / "run")

    def interrupt(numbers: StepNumbers) -> None:
        if numbers.step == 5:
            os.kill(os.getpid(), which)

    run.train(interrupt)
    assert run.interrupted == which.name
    assert run.progress.step == 5, "the step in progress was finished, and no other begun"
    again, damaged = resume(tmp_path / "run")
    assert (again.progress.step, damaged) == (5, [])
    again.train()
    finish(again)
    assert_same_run(whole, tmp_path / "run")


def test_a_stop_after_the_last_update_goes_on_with_the_same_log(whole, tmp_path):
    """Nothing that is logged may live only in memory."""
    run = start(SMALL, tmp_path / "run")
    last = SMALL.epochs * len(run.batches)
    run.train(lambda n: os.kill(os.getpid(), signal.SIGTERM) if n.step == last - 2 else None)
    again, _ = resume(tmp_path / "run")
    again.train()
    finish(again)
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_checkpoint_is_told_and_the_one_before_it_is_used(damage, whole, tmp_path):
    run = start(SMALL, tmp_path / "run")
    run.train(lambda n: os.kill(os.getpid(), signal.SIGINT) if n.step == 7 else None)
    older, newest = run.folder.checkpoints()
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes({"cut": content[:1000], "flip": bytes(content), "empty": b""}[damage])
    again, told = resume(tmp_path / "run")
    assert again.progress.step == int(older.stem.removeprefix("step-"))
    assert "damaged or cut short" in told[0]
    again.train()
    finish(again)
    assert_same_run(whole, tmp_path / "run")


def test_a_kill_while_a_checkpoint_is_written_leaves_the_old_ones(tmp_path, monkeypatch):
    run = start(SMALL, tmp_path / "run")
    run.save()
    before = {p: p.read_bytes() for p in run.folder.checkpoints()}
    run.step(*next(iter(run.batches)))

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sealed.os, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        run.save()
    monkeypatch.undo()
    assert {p: p.read_bytes() for p in run.folder.checkpoints()} == before
    assert resume(tmp_path / "run")[0].progress.step == 0


def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path, monkeypatch):
    run = start(SMALL, tmp_path / "run")
    run.save()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sealed, "to_disk", full)
    with pytest.raises(RunError, match=r"No space left on device.*the last checkpoint is intact"):
        run.save()
    monkeypatch.undo()
    assert resume(tmp_path / "run")[0].progress.step == 0


def test_no_intact_checkpoint_is_an_error(tmp_path):
    run = start(SMALL, tmp_path / "run")
    run.save().write_bytes(b"nonsense")
    with pytest.raises(RunError, match="no intact checkpoint"):
        resume(tmp_path / "run")


def test_another_format_and_another_network_are_refused(tmp_path, monkeypatch):
    run = start(SMALL, tmp_path / "run")
    run.save()
    monkeypatch.setattr(recipe_of_run, "recipe_of_checkpoint", lambda state: None)  # as in one of an earlier version
    run.folder.take_recipe(SMALL.replace(width=5))
    with pytest.raises(RunError, match="another network"):
        resume(tmp_path / "run")
    run.folder.take_recipe(SMALL)
    monkeypatch.setattr(checkpoint_files, "CHECKPOINTS", (2,))
    with pytest.raises(RunError, match="has format 1, this version reads 2"):
        resume(tmp_path / "run")


def test_folders_that_will_not_do(tmp_path, whole):
    with pytest.raises(RunError, match=r"holds a run already: go on with `ssvi train --resume"):
        start(SMALL, whole)
    with pytest.raises(RunError, match=r"not a run folder"):
        resume(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        start(SMALL, tmp_path / "file" / "run")
    (tmp_path / "recipe.toml").write_text("flux_capacitor = 1\n")
    with pytest.raises(RunError, match=r"recipe.toml is damaged or of another version of ssvi: unknown key 'flux_cap"):
        resume(tmp_path)


def test_another_number_of_processes_goes_on_with_other_noise(tmp_path):
    """The checkpoint of two processes, in one: their losses are averaged, and what it trains is not what either had."""
    run = start(SMALL, tmp_path / "run")
    file = run.save()
    state = checkpoint_files.read_checkpoint(file)
    noise, sums = state["rng"], torch.tensor([[3.0, 1.0], [5.0, 2.0]], dtype=torch.float64)
    two = {"rng": noise * 2, "sums": list(sums), "processes": 2}
    checkpoint_files.save_checkpoint(run.folder.path, 0, state | two)
    with pytest.warns(NoiseWarning, match="processes: 2 until step 0, and 1 from here on"):
        again, _ = resume(tmp_path / "run")
    assert (again.progress.loss, again.progress.nll) == (4.0, 1.5)
    assert not torch.equal(torch.get_rng_state(), noise[0])
    assert all(torch.equal(a, b) for a, b in zip(next(iter(run.batches)), next(iter(again.batches)), strict=True))


def test_a_checkpoint_says_how_many_processes_wrote_it(tmp_path):
    state = checkpoint_files.read_checkpoint(start(SMALL, tmp_path / "run").save())
    assert state["processes"] == len(state["rng"]) == len(state["sums"]) == 1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: p.mu.fill_(torch.nan), r"layer '4': mu or sigma is not finite"),
        (lambda p: p.rho.fill_(1.0), r"layer '4': sigma has run away, its mean is 2 "),
        (lambda p: p.mu.zero_(), r"layer '4' is dead"),
    ],
    ids=["nan", "runaway", "dead"],
)
def test_the_guard_names_layer_number_and_remedy(spoil, message, tmp_path):
    run = start(SMALL.replace(method="ssvi-lrt", prior_sigma=0.2, sigma_init=0.01), tmp_path / "run")
    run.save()
    with torch.no_grad():
        spoil(run.net[4].posterior)
    with pytest.raises(TrainingError, match=message):
        epoch_end.summarise(None, run.training, Progress(), run.task, run.batches, None)
    assert resume(tmp_path / "run")[0].progress.step == 0, "the last good checkpoint is still there"


@pytest.mark.filterwarnings("ignore::ssvi.inference.watch.TrainingWarning")  # a sigma at its bound, just before
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path):
    run = start(SMALL.replace(lr=1e20), tmp_path / "run")
    with pytest.raises(TrainingError, match=r"loss=|nll=|NaN"):
        run.train()
    assert resume(tmp_path / "run")[0].folder.checkpoints()


@pytest.mark.parametrize(("gradient", "message"), [(torch.nan, "gradient is not finite"), (3e38, "loss=nan")])
def test_a_divergence_of_a_run_is_an_error_and_no_warning_beside_it(tmp_path, gradient, message):
    """A step that makes mu NaN is looked at by the watch; a warning would be an error of another kind here."""
    run = start(SMALL, tmp_path / "run")
    handle = run.net[4].mu.register_hook(lambda g: torch.full_like(g, gradient))
    with pytest.raises(TrainingError, match=message):
        run.train()
    handle.remove()
