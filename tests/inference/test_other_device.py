"""On another device than the CPU: everything that training makes is on the device of its layer."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "helpers" / "training_on_other_device.py"


def test_training_makes_nothing_on_the_cpu():
    """Training, updates of gamma, IVON, prediction and saving, with the numbers that the CPU gives."""
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    results = json.loads(lines[0])
    assert {"one batch", "several batches", "at the mean", "IVON", "predict", "save", "mixes"} == set(results)
    for name, error in results.items():
        assert not error, f"{name}: {error}"
