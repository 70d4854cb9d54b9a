"""Signals, exit codes and closed pipes, with real processes: a signal at any moment is quiet and has the code of POSIX."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ssvi.signals import exit_code

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="/proc tells when handlers are installed"
)
BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
WAIT = 100
"""Seconds that a slow and busy machine may need."""


def started(*words: object, **settings) -> subprocess.Popen:
    """`ssvi WORDS` in a process of its own, after its handlers of signals are installed."""
    command = [sys.executable, "-m", "ssvi", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)
    until(lambda: catches(process, signal.SIGTERM) or process.poll() is not None)
    return process


def catches(process: subprocess.Popen, number: int) -> bool:
    """Whether the process has a handler for the signal, as Linux tells it."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigCgt"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def until(condition) -> None:
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.005)


def stopped(process: subprocess.Popen, number: int) -> tuple[str, str]:
    """Send the signal; the process must end with its code and without a traceback. Returns stdout and stderr."""
    process.send_signal(number)
    out, errors = process.communicate(timeout=WAIT)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors
    return out, errors


def test_the_codes_of_posix():
    assert (exit_code("SIGINT"), exit_code("SIGTERM"), exit_code("another process was interrupted")) == (130, 143, 130)


@BOTH
@pytest.mark.parametrize("moment", [random.Random(seed).uniform(0, 0.6) for seed in range(3)])
def test_a_signal_while_torch_is_imported_is_quiet(number, moment):
    process = started("train", "digits", "--epochs", "1000000", "--out", os.devnull)  # a folder that cannot be made
    time.sleep(moment)
    if process.poll() is None:
        assert stopped(process, number) == ("", "")
    else:
        assert process.communicate()[1].startswith("error: "), "a fast machine had come to the end"


@BOTH
def test_training_saves_and_says_how_to_go_on(number, tmp_path):
    run = tmp_path / "run"
    process = started("train", "digits", "--width", 4, "--epochs", 100000, "--out", run, "--json", "--threads", 1)
    until(lambda: (run / "metrics.jsonl").exists())
    out, errors = stopped(process, number)
    assert errors.startswith(f"{number.name}: saved at step ")
    assert errors.endswith(f"; go on with: ssvi train --resume {run}\n")
    assert len(errors.splitlines()) == 1
    assert all(json.loads(line) for line in out.splitlines())


@BOTH
@pytest.mark.parametrize("command", ["evaluate", "corrupt"])
def test_a_command_that_works_on_a_run_stops(number, command, run):
    process = started(command, run, "--samples", 2_000_000)
    until(lambda: is_working(process))
    out, errors = stopped(process, number)
    assert out == ""
    assert errors in ("", f"{number.name}: stopped; the same command starts again\n")


def is_working(process: subprocess.Popen) -> bool:
    """Whether torch's library is loaded, which is the last long import."""
    return "libtorch_cpu" in Path(f"/proc/{process.pid}/maps").read_text() or process.poll() is not None


def test_a_signal_that_was_ignored_stays_ignored():
    """A shell without job control starts `ssvi ... &` in this way."""
    process = started("recipes", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=WAIT)
    assert (process.returncode, errors) == (0, "")
    assert "digits" in out


@pytest.mark.parametrize("words", ["recipes", "recipes --json", "--help", "train --help"])
def test_a_closed_pipe_is_quiet(words):
    """`ssvi recipes | head -1`, where the reader is gone before anything is written."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "ssvi", *words.split()]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=WAIT)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_command_line_loads_without_fcntl():
    """Windows has no `fcntl` and no `resource`; only training several runs at a time needs the first."""
    program = (
        "import sys; sys.modules['fcntl'] = sys.modules['resource'] = None\n"
        "from ssvi.cli import COMMANDS, load_command\nfor name in COMMANDS: load_command(name)"
    )
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stderr
