"""Fair timing: the sides take turns, the median of several turns counts, and the order of the sides alternates."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def interleaved(sides: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each side over `repeats` turns, after one turn that does not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats + 1):
        for name in sides if turn % 2 else reversed(sides):
            start = time.perf_counter()
            sides[name]()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def in_fresh_process(function: str, *arguments: object) -> float:
    """Calls `bench.function(*arguments)` in a new interpreter and returns the number that it gives."""
    code = f"import bench, json; print(json.dumps(bench.{function}(*{json.dumps(arguments)})))"
    here = Path(__file__).parent
    result = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    return float(result.stdout.splitlines()[-1])
