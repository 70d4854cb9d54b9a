"""IVON in two processes: each has a theta of its own, and both have the same network after every step."""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "helpers" / "ivon_in_two_processes.py"


def test_gradients_and_curvature_are_averaged():
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAM)]
    done = subprocess.run([sys.executable, *launch], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    assert json.loads(lines[0]) == {
        "thetas differ": True,
        "estimates differ": True,
        "h is of the mean": True,
        "updates": 3,
        "same network": True,
        "same h": True,
    }
