"""`ssvi tune`: a kill in the middle, what it prints in the end, and mistakes."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from fake_trials import studies_in
from grids import SMALL

from ssvi.cli import cli
from ssvi.training import recipe_files
from ssvi.training.run import finish
from ssvi.training.start import start


def command(out, *words):
    return [sys.executable, "-m", "ssvi", "tune", "digits", *SMALL, "--out", str(out), "--jobs", "1", *words]


def test_after_kill_9_the_same_command_goes_on_and_its_tables_train(tmp_path):
    """One trial, with the authors' settings, which are not at an edge; the second command must not begin another one."""
    words = command(tmp_path, "--methods", "static,ensemble", "--trials", "1")
    environment, log = os.environ | {"OMP_NUM_THREADS": "1"}, tmp_path / "static-trial0" / "stdout.log"
    first = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    end = time.monotonic() + 60
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=30)
    assert log.exists(), "its run goes on alone"
    again = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=110, env=environment)
    assert again.returncode == 0, again.stderr
    tuning = json.loads(again.stdout)
    assert tuning["studies"]["static"]["trials"] == tuning["budget"] == 1
    assert tuning["trials"] == [tuning["best"]["static"]]
    assert tuning["trials"][0]["settings"] == {"lr": 0.1, "weight_decay": 5e-4}
    assert tuning["trials"][0]["seconds"] > 0
    printed = CliRunner().invoke(cli, words[3:], catch_exceptions=False).stdout
    assert "digits-static" in printed
    tables = tmp_path / "tuned.toml"
    tables.write_text(printed[printed.index("# study digits-static: trial ") :])
    recipe = recipe_files.read(tables, "static").replace(epochs=1, width=4, threads=1)
    assert recipe.values.items() >= tuning["best"]["static"]["settings"].items()
    run = start(recipe, tmp_path / "run")
    run.train()
    finish(run)
    assert run.folder.finished


def test_a_signal_lets_the_runs_save(tmp_path):
    words = command(tmp_path, "--methods", "static", "--epochs", "2000", "--trials", "1")
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    log, end = tmp_path / "static-trial0" / "metrics.jsonl", time.monotonic() + 60
    while not log.exists() and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said.endswith("SIGTERM: saved; 0 trials have ended, the same command goes on\n")
    assert "go on with" in (tmp_path / "static-trial0" / "stderr.log").read_text()
    (study,) = studies_in(tmp_path, "static", epochs=2000, threads=0)
    assert [record.number for record in study.running()] == [0], "it is still open"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--methods", "ensemble"), "--methods=ensemble: none of them is tuned; take some of ssvi"),
        (("--validation", "0"), "validation=0.0: tuning compares its trials on validation images"),
        (("--trials", "0"), "--trials"),
        (("--minutes", "0"), "--minutes"),
    ],
)
def test_mistakes_are_named_before_anything_is_made(words, message, tmp_path):
    said = CliRunner().invoke(cli, ["tune", "digits", "--out", str(tmp_path / "out"), *words])
    assert message in f"{said.output}{said.exception}"
    assert said.exit_code != 0
    assert not (tmp_path / "out").exists()


def test_without_optuna_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    said = CliRunner().invoke(cli, ["tune", "digits", "--out", str(tmp_path / "out")])
    assert "pip install 'ssvi[tune]'" in str(said.exception)
    assert not (tmp_path / "out").exists()
