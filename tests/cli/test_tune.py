"""`ssvi tune` on the command line."""

import json
import subprocess
import sys

from ssvi.comparison.tuning import BUDGET


def test_on_the_command_line(tmp_path):
    command = [sys.executable, "-m", "ssvi", "tune", "digits", "--methods", "static,ensemble", "--epochs", "1"]
    command += ["--width", "4", "--out", str(tmp_path), "--jobs", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    tuning = json.loads(done.stdout)
    assert len(tuning["trials"]) == tuning["budget"] == BUDGET
    lowest = min(tuning["trials"], key=lambda trial: trial["nll"])
    assert tuning["best"]["static"] == lowest
