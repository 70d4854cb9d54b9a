"""How to measure: the sides take turns, so that other work of the machine slows all of them alike."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median

from ssvi.bench.cases import Work
from ssvi.bench.steps import training_step
from ssvi.training import epoch_end

SHORTEST_TURN = 0.02
"""Seconds. Shorter work is repeated within its turn: a loop calls it again and again, and has its code in the caches."""


def interleaved(sides: Mapping[str, Work], turns: int) -> dict[str, float]:
    """Warm every side up twice, then let them take `turns` turns. The seconds of each side: the median of its turns."""
    calls = {name: _calls_of_a_turn(work) for name, work in sides.items()}
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(turns):
        for name, work in sides.items():
            times[name].append(_seconds(work, calls[name]))
    return {name: median(seconds) for name, seconds in times.items()}


def _calls_of_a_turn(work: Work) -> int:
    work()
    return max(1, math.ceil(SHORTEST_TURN / _seconds(work, 1)))


def _seconds(work: Work, calls: int) -> float:
    """The seconds of one call, the mean of several in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - start) / calls


@contextmanager
def taken_core() -> Iterator[None]:
    """Inside, another process computes without a pause on one of the cores of this process (Linux; elsewhere on any)."""
    program = "while True: pass"
    if hasattr(os, "sched_getaffinity"):
        program = f"import os; os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n{program}"
    other = subprocess.Popen([sys.executable, "-c", program])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def peak_memory(kind: str, density: float) -> int:
    """The largest resident size in bytes of a fresh process that makes two training steps."""
    program = f"from ssvi.bench.measure import training_peak; print(training_peak({kind!r}, {density!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def training_peak(kind: str, density: float) -> int:
    """Peak size of this process above what importing everything takes, after two steps of ResNet-18 at batch 128."""
    import torch._dynamo  # noqa: F401 - as every optimiser of torch does at its first step: it is no part of a step

    before = epoch_end.peak_memory()
    step = training_step(kind, density)
    step()
    step()
    return epoch_end.peak_memory() - before
