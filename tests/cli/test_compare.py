"""`ssvi compare`: what it trains, prints and writes, and what signals and mistakes do."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from fake_home import FakeHome
from grids import SMALL, planned
from lock_holder import HOLD_LOCK

from ssvi.cli import cli
from ssvi.cli.many_runs import train_missing
from ssvi.comparison import engine, processes


def test_compare_trains_once_prints_and_writes(tmp_path):
    out, page = tmp_path / "out", tmp_path / "page.md"
    words = ["compare", "digits", *SMALL, "--methods", "ssvi,vi", "--seeds", "3", "--samples", "2", "--jobs", "2"]
    words += ["--out", str(out), "--json", "--write", str(page)]
    done = subprocess.run(
        [sys.executable, "-m", "ssvi", *words], capture_output=True, text=True, check=True, timeout=110,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert "vi-seed3: trained" in done.stderr
    assert [(run["method"], run["seed"]) for run in told["runs"]] == [("ssvi", 3), ("vi", 3)]
    dense = told["rows"][1]["mean"]
    assert dense["of_dense_vi"] == 1
    assert dense["training_flops"] == dense["training_flops_dense_vi"]
    assert f"`ssvi {' '.join(words)}`" in page.read_text()
    assert "ssvi-0.05-seed3" in (out / "report.html").read_text()
    again = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert json.loads(again.stdout)["runs"] == told["runs"]
    assert "trained" not in again.stderr
    at = words.index("--samples")
    as_recipe = CliRunner().invoke(cli, words[:at] + words[at + 2 :], catch_exceptions=False)
    assert [run["samples"] for run in json.loads(as_recipe.stdout)["runs"]] == [5, 5]


def test_with_an_address_a_lost_folder_comes_back_from_its_copy(tmp_path, monkeypatch):
    words = ["compare", "digits", *SMALL, "--methods", "ssvi", "--seeds", "3", "--samples", "2", "--json"]
    words += ["--out", f"file://{tmp_path}/store"]
    said = []
    for machine in ("first", "second"):
        folder = tmp_path / machine
        folder.mkdir()
        monkeypatch.chdir(folder)
        said.append(CliRunner().invoke(cli, words, catch_exceptions=False))
        assert said[-1].exit_code == 0, said[-1].output
    assert "ssvi-0.05-seed3: trained" in said[0].stderr
    assert "trained" not in said[1].stderr
    assert json.loads(said[0].stdout)["runs"] == json.loads(said[1].stdout)["runs"]
    assert (folder / "compare" / "digits" / "ssvi-0.05-seed3" / "evaluation.json").is_file()


def test_a_folder_in_which_another_process_trains_is_left_alone_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "command", lambda run, *more: pytest.fail(f"{run.name} is trained"))
    monkeypatch.setattr(engine, "PATIENCE", 0.0)
    folder = tmp_path / "ssvi-0.05-seed0"
    folder.mkdir()
    holder = subprocess.Popen([sys.executable, "-c", HOLD_LOCK, folder], stdout=subprocess.PIPE)
    words = ["compare", "digits", *SMALL, "--methods", "ssvi", "--seeds", "0", "--out", str(tmp_path)]
    with holder:
        assert holder.stdout.readline() == b"locked\n"
        said = CliRunner().invoke(cli, words)
        holder.kill()
    assert said.exit_code == 1
    assert f"failed: {folder}" in said.stderr
    assert "another process trains in" in said.stderr
    assert "0 of 1" in said.stdout


def test_a_signal_lets_the_runs_save(tmp_path):
    words = [sys.executable, "-m", "ssvi", "compare", "digits", "--methods", "ssvi", "--width", "4", "--out", tmp_path]
    process = subprocess.Popen([*words, "--epochs", "2000", "--jobs", "2"], stderr=subprocess.PIPE, text=True)
    runs = planned(tmp_path, "ssvi", seeds=(0, 1, 2), epochs=2000)
    end = time.monotonic() + 60
    while not all(run.epochs_done for run in runs[:2]) and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said == "SIGTERM: saved; 0 of 3 runs are finished, the same command goes on\n"
    assert [run.begun for run in runs] == [True, True, False]
    assert all("go on with" in (run.path / "stderr.log").read_text() for run in runs[:2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--methods", "ssvi,lasso"), "lasso: take some of ssvi"),
        (("--densities", "a"), "'a': give numbers such as 0.05,0.1"),
        (("--seeds", ","), "',': give whole numbers such as 0,1,2"),
        (("--seed", "1"), "--seeds"),
        (("--address", "head:6379"), "--address=head:6379 is that of a Ray cluster: add --engine ray"),
        (("--cores", "0"), "'--cores'"),
    ],
)
def test_mistakes_name_the_flag(words, message, tmp_path):
    said = CliRunner().invoke(cli, ["compare", "digits", "--out", str(tmp_path / "out"), *words])
    assert said.exit_code == 2
    assert message in said.output
    assert not (tmp_path / "out").exists()


class Talkative(FakeHome):
    """Prints as Ray does, from a thread of its own, when a worker was lost."""

    def start(self, *arguments):
        print("(raylet) A worker died")
        return super().start(*arguments)


def test_what_a_home_prints_does_not_mix_with_the_results(tmp_path, capsys):
    (run,) = planned(tmp_path, "ssvi")
    assert train_missing([run], "digits", 1, None, Talkative()) == {}
    assert capsys.readouterr().out == ""


def test_an_address_is_not_taken_for_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(cli, ["tune", "digits", "--methods", "static", *SMALL, "--out", "s3://bucket/name"])
    assert "is an address: this command takes a folder" in f"{said.output}{said.exception}"
    assert not list(tmp_path.iterdir())


def test_a_method_that_is_not_tuned_is_named(tmp_path):
    said = CliRunner().invoke(cli, ["tune", "digits", "--methods", "ensemble", "--out", str(tmp_path / "out")])
    assert "--methods=ensemble: none of them is tuned; take some of ssvi" in f"{said.output}{said.exception}"
    assert not (tmp_path / "out").exists()
