"""What a training run shows: at 80 columns the bar keeps its ETA; in a pipe a line for each epoch, and a whole table."""

import os
import re
import subprocess
import sys

import pytest

from ssvi.cli.progress import fitted

pty = pytest.importorskip("pty")

TRAIN = [sys.executable, "-m", "ssvi", "train", "digits", "--epochs", "3", "--width", "4", "--threads", "1"]


def on_a_terminal(command: list[str], columns: int) -> str:
    """What the command writes to a terminal of this width."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm"}
        os.execv(command[0], command)
    written = b""
    try:
        while block := os.read(terminal, 65536):
            written += block
    except OSError:  # Linux says so when the other side is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, written.decode()
    return written.decode()


def visible(written: str) -> list[str]:
    """The lines without colours and movements of the cursor."""
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("columns", [80, 200])
def test_the_bar_keeps_its_eta(columns, tmp_path):
    lines = visible(on_a_terminal([*TRAIN, "--out", str(tmp_path / "run")], columns))
    bars = [line for line in lines if re.search(r"\d+/\d+ ", line) and "epoch" in line]
    assert bars
    for line in bars:
        assert re.search(r"\d+/\d+ \d:\d\d:\d\d [\d-]:[\d-]{2}:[\d-]{2}\s*$", line), line
        assert len(line) <= columns
    assert re.match(r"epoch 3  loss \d\.\d+ .*val \d", bars[-1])
    assert ("beta" in bars[-1]) == (columns == 200)


def test_piped_output_is_plain_and_complete(tmp_path):
    run = tmp_path / ("a-long-name-of-a-folder" * 6) / "run"
    done = subprocess.run([*TRAIN, "--out", str(run)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout), "a control character"
    lines = done.stdout.splitlines()
    assert lines[0] == f"run folder: {run}"
    assert [line.split(":")[0] for line in lines[1:4]] == ["epoch 1", "epoch 2", "epoch 3"]
    assert lines[4].strip() == f"test set, {run}"
    rows = [line for line in lines if line.startswith("│")]
    assert len(rows) > 5
    assert all(re.fullmatch(r"│ \w+ +│ \S+ +│", row) for row in rows)


def test_numbers_leave_in_their_order():
    numbers = {"epoch 1": 0, "loss 2.3": 1, "NLL 2.2": 3, "": 9, "val 90%": 2}
    assert fitted(numbers, 100) == "epoch 1  loss 2.3  NLL 2.2  val 90%"
    assert fitted(numbers, 30) == "epoch 1  loss 2.3  val 90%"
    assert fitted(numbers, 0) == "epoch 1"
