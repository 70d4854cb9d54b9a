"""`ssvi compare`: which runs there are, that each is trained once, and tables whose numbers are those of the runs."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from ssvi import comparison as compare
from ssvi.cli import cli
from ssvi.cli.train import resolve, train_command
from ssvi.comparison import engine as training
from ssvi.comparison.progress import Bars
from ssvi.training import recipe as config
from ssvi.training.run import start
from ssvi.training.run_folder import RunError

SMALL = ("--epochs", "1", "--width", "4")


def planned(out, *methods, densities=None, seeds=(0,), **changes):
    recipes = [config.load("digits", method).replace(**({"epochs": 1, "width": 4} | changes)) for method in methods]
    return compare.plan(recipes, densities, seeds, out)


def trained(run, epochs=None):
    """Train in this process, which is quicker; stop after some epochs as a signal would."""
    made = start(run.recipe, run.path)

    def on_epoch(line):
        if line["epoch"] + 1 == epochs:
            made.interrupted = "SIGTERM"

    made.train(lambda numbers: None, on_epoch)
    if not made.interrupted:
        made.finish()
    return run


def train(runs, jobs=2):
    with Bars(runs) as bars:
        return compare.train_missing(runs, "digits", jobs, None, bars)


@pytest.fixture
def no_training(monkeypatch):
    monkeypatch.setattr(training, "command", lambda run, *more: pytest.fail(f"{run.name} is trained"))


def test_once_per_density_only_where_the_method_aims_at_one(tmp_path):
    runs = planned(tmp_path, "ssvi", "vi", "group-vd", densities=(0.05, 0.1), seeds=(0, 7))
    assert [run.name for run in runs] == [
        "ssvi-0.05-seed0", "ssvi-0.05-seed7", "ssvi-0.1-seed0", "ssvi-0.1-seed7",
        "vi-seed0", "vi-seed7", "group-vd-seed0", "group-vd-seed7",
    ]  # fmt: skip
    assert [run.recipe.density for run in runs[2:5]] == [0.1, 0.1, config.load("digits").density]
    assert [run.name for run in planned(tmp_path, "ssvi", density=1e-3)] == ["ssvi-0.001-seed0"]


def test_the_flags_of_a_run_make_its_recipe():
    base = config.load("digits", "static")
    wanted = base.replace(per_epoch=True, keep_dense=(), skip=("a", "b"), lr=1e-7, seed=-3, epochs=2, mu_init="0.1")
    given = train_command.make_context("train", training.flags(base, wanted)).params
    fields = {key: value for key, value in given.items() if key in config.FIELDS and value is not None}
    assert resolve("digits", fields, None) == wanted


@pytest.mark.usefixtures("no_training")
def test_what_is_finished_is_not_trained_again(tmp_path, capsys):
    runs = [trained(run) for run in planned(tmp_path, "ssvi")]
    assert train(runs) == compare.Outcome()
    compare.refuse_changes(planned(tmp_path, "ssvi", threads=2))  # another number of threads is the same run
    assert capsys.readouterr().err == ""


def test_what_was_interrupted_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    (run,) = planned(tmp_path, "ssvi", epochs=3)
    trained(run, epochs=1)
    first = run.folder.metrics()
    assert run.epochs_done == 1
    assert train([run]) == compare.Outcome()
    assert run.folder.finished
    assert run.folder.metrics()[:1] == first
    assert run.epochs_done == len(run.folder.metrics()) == 3
    assert "all runs" in capsys.readouterr().err


def test_another_recipe_in_the_folder_is_refused(tmp_path):
    trained(*planned(tmp_path, "ssvi"))
    with pytest.raises(
        RunError, match=r"epochs=1 \(now 2\), lr=0\.1 \(now 0\.2\): choose another folder with --out, or"
    ):
        compare.refuse_changes(planned(tmp_path, "ssvi", epochs=2, lr=0.2))


def test_one_that_fails_leaves_the_others_alone(tmp_path, capsys):
    bad, good = planned(tmp_path, "ssvi", "vi", epochs=2)
    trained(bad, epochs=1)
    for file in bad.folder.checkpoints():
        file.write_bytes(b"damaged")
    outcome = train([bad, good], jobs=1)
    assert list(outcome.failures) == [bad.name]
    assert "no intact checkpoint" in outcome.failures[bad.name]
    assert good.folder.finished
    assert capsys.readouterr().err == f"{bad.name}: failed, 1 to go\n{good.name}: trained, 0 to go\n"
    found = compare.measure([bad, good], outcome.failures, samples=1)
    assert found[0]["failed"] == outcome.failures[bad.name]
    dense, sparse, costs = (table[2] for table in compare.tables(compare.rows(found)))
    assert dense[0][2] == sparse[0][2] == costs[0][1] == "failed"
    assert dense[0][-1] == "0 (1 failed)"
    assert dense[1][2] == f"{found[1]['accuracy']:.2%}"


@pytest.mark.usefixtures("no_training")
def test_a_folder_in_which_somebody_trains_is_left_alone_and_told(tmp_path):
    folder = tmp_path / "ssvi-0.05-seed0"
    folder.mkdir()
    words = ["compare", "digits", *SMALL, "--methods", "ssvi", "--seeds", "0", "--out", str(tmp_path)]
    with open(folder / "stdout.log", "wb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        said = CliRunner().invoke(cli, words)
    assert said.exit_code == 1
    assert f"failed: {folder}" in said.stderr
    assert "another process trains in" in said.stderr
    assert "0 (1 failed)" in said.stdout


def test_a_signal_lets_the_runs_save(tmp_path):
    words = [sys.executable, "-m", "ssvi", "compare", "digits", "--methods", "ssvi", "--width", "4", "--out", tmp_path]
    process = subprocess.Popen([*words, "--epochs", "2000", "--jobs", "2"], stderr=subprocess.PIPE, text=True)
    runs = planned(tmp_path, "ssvi", seeds=(0, 1, 2), epochs=2000)
    end = time.monotonic() + 60
    while not all(run.epochs_done for run in runs[:2]) and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "SIGTERM: saved; 0 of 3 runs are finished, the same command goes on\n"
    assert [run.begun for run in runs] == [True, True, False]
    assert all("go on with" in (run.path / "stderr.log").read_text() for run in runs[:2])


def numbers(method, density, seed, **values):
    plain = dict.fromkeys(("accuracy", "nll", "marginal_calibration_error", "ece", "sparsity", "live_weights"), 0.5)
    plain |= dict.fromkeys(("training_flops", "memory_bytes", "disk_bytes", "inference_flops", "of_dense_vi"), 2000)
    plain |= {"training_seconds": 1.0, "peak_memory_bytes": None, "examples": 10}
    place = {"run": f"r{seed}", "data": "digits", "method": method, "density": density, "seed": seed}
    return place | {"unit": "none" if method == "vi" else "weight"} | plain | values


HAND_MADE = [
    numbers("ssvi", 0.05, 0, accuracy=0.90, nll=0.2, training_seconds=1.0, peak_memory_bytes=3e9),
    numbers("ssvi", 0.05, 1, accuracy=0.92, nll=0.4, training_seconds=2.0, peak_memory_bytes=5e9),
    numbers("ssvi", 0.05, 2, accuracy=0.97, nll=0.6, training_seconds=6.0, peak_memory_bytes=4e9),
    numbers("vi", None, 0, accuracy=0.95, ece=0.01234),
]


def test_mean_and_standard_deviation_by_hand():
    tables = {title: [dict(zip(head, row, strict=True)) for row in rows]
              for title, head, rows in compare.tables(compare.rows(HAND_MADE))}  # fmt: skip
    one, two, costs = tables.values()
    # 90, 92, 97: mean 93, squares 9 + 1 + 16 = 26, 26 / 2 = 13, root 3.61
    assert (one[0]["model"], one[0]["accuracy"], one[0]["seeds"]) == ("SSVI, density 0.05", "93.00% ± 3.61%", "3")
    assert (one[1]["accuracy"], one[1]["ECE (Guo, top label)"]) == ("95.00%", "0.0123")
    assert (one[0]["unit"], one[1]["unit"]) == ("weight", "-")
    assert one[0]["marginal calibration error (the paper's ECE)"] == "0.5000 ± 0.0000"
    assert [row["loss (NLL)"] for row in two] == ["0.4000 ± 0.2000"]
    assert two[0]["training FLOPs"] == "2k"
    assert (costs[0]["wall-clock of training"], costs[0]["peak memory (bytes)"]) == ("3.0 s ± 2.6 s", "4G ± 1G")
    assert costs[1]["peak memory (bytes)"] == "-"
    summary = compare.rows(HAND_MADE)[0].summary()
    assert summary["mean"]["accuracy"] == pytest.approx(0.93, abs=1e-15)
    assert summary["std"]["accuracy"] == pytest.approx(0.0013**0.5, abs=1e-15)


ABOUT = {
    "command": "ssvi compare digits",
    "date": "2026-01-01",
    "machine": {"processor": "P", "cores": 2, "torch": "2"},
    "data": "digits",
    "model": "lenet",
    "epochs": {"ssvi": 1},
    "samples": 5,
    "jobs": 2,
    "seeds": [0, 1, 2],
}


def test_a_section_is_replaced_between_its_markers(tmp_path):
    page, text = tmp_path / "page.md", compare.section("digits", ABOUT, compare.rows(HAND_MADE))
    assert "| digits | SSVI, density 0.05 | 93.00% ± 3.61% |" in text
    assert "seeds 0, 1, 2" in text
    page.write_text("# Results\n\n<!-- compare digits -->\nold\n<!-- end compare digits -->\n\nThe end.\n")
    for _ in range(2):
        compare.write_section(page, "digits", text)
        assert page.read_text() == f"# Results\n\n{text}\nThe end.\n"
    other = compare.section("cifar10", ABOUT, compare.rows(HAND_MADE))
    for _ in range(2):
        compare.write_section(page, "cifar10", other)
        assert page.read_text() == f"# Results\n\n{text}\nThe end.\n\n{other}"
    page.write_text("<!-- compare digits -->\n")
    with pytest.raises(RunError, match="mend the page"):
        compare.write_section(page, "digits", text)


def test_the_command_trains_tells_and_finds_again(tmp_path):
    out, page = tmp_path / "out", tmp_path / "page.md"
    words = ["compare", "digits", *SMALL, "--methods", "ssvi,vi", "--seeds", "3", "--samples", "2", "--jobs", "2"]
    words += ["--out", str(out), "--json", "--write", str(page)]
    done = subprocess.run(
        [sys.executable, "-m", "ssvi", *words], capture_output=True, text=True, check=True, timeout=110,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    made = json.loads(done.stdout)
    assert "vi-seed3: trained" in done.stderr
    assert [(run["method"], run["seed"]) for run in made["runs"]] == [("ssvi", 3), ("vi", 3)]
    dense = made["rows"][1]["mean"]
    assert dense["of_dense_vi"] == 1
    assert dense["training_flops"] == dense["training_flops_dense_vi"]
    assert f"`ssvi {' '.join(words)}`" in page.read_text()
    assert "ssvi-0.05-seed3" in (out / "report.html").read_text()
    again = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert json.loads(again.stdout)["runs"] == made["runs"]
    assert "trained" not in again.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--methods", "ssvi,lasso"), "lasso: take some of ssvi"),
        (("--densities", "a"), "'a': give numbers such as 0.05,0.1"),
        (("--seeds", ","), "',': give whole numbers such as 0,1,2"),
        (("--seed", "1"), "--seeds"),
    ],
)
def test_mistakes_name_the_flag(words, message, tmp_path):
    said = CliRunner().invoke(cli, ["compare", "digits", "--out", str(tmp_path / "out"), *words])
    assert said.exit_code == 2
    assert message in said.output
    assert not (tmp_path / "out").exists()
