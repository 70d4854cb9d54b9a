"""With noise, two processes give what one gives in distribution. The seeds are fixed, so the tests pass or fail for good;
the false-alarm rates tell how often another seed would fail although all is right."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from scipy.stats import ks_2samp
from torch import Tensor

pytestmark = pytest.mark.slow  # 20 seconds of two processes

PROGRAM = Path(__file__).parents[1] / "helpers" / "noise_in_two_processes.py"
FALSE_ALARMS = 1e-4
"""Of each single comparison: with 3 numbers a test fails by chance once in 3,000 seeds or less."""


@cache
def numbers(method: str, processes: int, seed: int) -> Tensor:
    """(repetitions, 3): the loss, and two projections of the gradient."""
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes > 1 else []
    )
    command = [sys.executable, *launch, str(PROGRAM), method, str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines, done.stderr
    return torch.tensor(json.loads(lines[0]), dtype=torch.float64)


def smallest_p(a: Tensor, b: Tensor) -> float:
    """Of the two-sample Kolmogorov-Smirnov test, over the three numbers."""
    return min(ks_2samp(a[:, i], b[:, i]).pvalue for i in range(3))


def test_local_reparameterisation_has_the_same_distribution():
    """Every activation has noise of its own, so it does not matter which process computes it."""
    one, two = numbers("lrt", 1, seed=0), numbers("lrt", 2, seed=1)
    assert smallest_p(one, two) > FALSE_ALARMS


def test_a_wrong_distribution_is_noticed():
    """The test above can fail: it sees half the noise, and losses that are too large by two fifths of their noise."""
    one, two = numbers("lrt", 1, seed=0), numbers("lrt", 2, seed=1)
    half = two.mean(0) + (two - two.mean(0)) / 2
    assert smallest_p(one, half) < FALSE_ALARMS
    assert smallest_p(one, two + 0.4 * two.std(0)) < FALSE_ALARMS


def test_ivon_has_the_same_means():
    """Each process has a theta of its own, so the distributions differ, but not the means. z-tests at the same rate."""
    one, two = numbers("ivon", 1, seed=0), numbers("ivon", 2, seed=1)
    error = (one.var(0) / len(one) + two.var(0) / len(two)).sqrt()
    z = (one.mean(0) - two.mean(0)) / error
    assert z.abs().max() < 3.89, z
