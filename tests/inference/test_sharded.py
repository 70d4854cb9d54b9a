"""Training with FSDP2: the same steps and updates as without, in one process and in two."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "helpers" / "sharded_training.py"


@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_sharded_network_trains_as_a_plain_one(processes):
    """`fully_shard(bnn)`, alone or after each of its layers, then ELBO, Adam and Subspace as usual."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), str(PROGRAM)]
    done = subprocess.run([sys.executable, *launch], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    results = json.loads(lines[0])
    assert set(results) == {"at the root", "nested"}
    for checks in results.values():
        assert all(checks.values()), results
