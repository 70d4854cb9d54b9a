"""Where the time of a training step at one theta goes, part by part.

The native kernels are timed at the border of the library, and time their packing themselves; torch's operators are timed
by its profiler, the optimiser and the updates of gamma as a whole. What is left of the step is Python, autograd and
whatever has no name: so the parts add up.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from torch.profiler import ProfilerActivity
from torch.profiler import profile as torch_profile

from ssvi.bench.ratios import Say
from ssvi.bench.results import ProfileRow
from ssvi.bench.steps import EVERY, TrainingStep, training_step
from ssvi.kernels.native.functions import FUNCTIONS
from ssvi.kernels.native.library import library

CASES = ((64, 128), (16, 128), (16, 16))
"""Width of the ResNet-18 and batch: the last two are where Python weighs more."""

REST, OPTIMISER, GAMMA, OTHER = "Python, autograd and rest", "optimiser", "update of gamma", "other torch operators"
_NATIVE = {  # the first name that occurs in that of a function
    "batchnorm_backward": "BatchNorm, ReLU and sums, backward",
    "batchnorm_sums": "BatchNorm, ReLU and sums, backward",
    "batchnorm": "BatchNorm, ReLU and sums, forward",
    "backward": "sparse layers, backward",
    "forward": "sparse layers, forward",
}
_PACKING = {
    "sparse layers, backward": "packing of dl/dy, backward",
    "sparse layers, forward": "packing of x, forward",
}
_TORCH = {
    "conv": "loss and dense layers by torch",
    "loss": "loss and dense layers by torch",
    "softmax": "loss and dense layers by torch",
    "index": "loss and dense layers by torch",
    "pool": "pooling, ReLU and sums by torch",
    "mean": "pooling, ReLU and sums by torch",
    "relu": "pooling, ReLU and sums by torch",
    "threshold": "pooling, ReLU and sums by torch",
    "add": "pooling, ReLU and sums by torch",
}


def profile(turns: int, say: Say) -> list[ProfileRow]:
    """The step of IVON at 95 % for every case."""
    rows = []
    for width, batch in CASES:
        say(f"profile of a step of IVON: width {width}, batch {batch}")
        rows.append(_row(width, batch, turns))
    return rows


def _row(width: int, batch: int, turns: int) -> ProfileRow:
    step = training_step("ivon", width=width, batch=batch)
    plain, profiled, parts = _timed_steps(step, turns)
    gamma = median(_seconds(training_step("ivon", width=width, batch=batch, every=1)) for _ in range(3)) - plain
    parts[GAMMA] = max(0.0, gamma) / EVERY
    total = profiled + parts[GAMMA]
    parts[REST] = total - sum(parts.values())
    ms = {name: 1e3 * seconds for name, seconds in sorted(parts.items(), key=lambda part: -part[1])}
    what = f"ResNet-18 at 95 %, IVON, width {width}, batch {batch}"
    return ProfileRow(what, 1e3 * total, profiled / plain - 1, ms)


def _seconds(work: Callable[[], None]) -> float:
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _timed_steps(step: TrainingStep, turns: int) -> tuple[float, float, dict[str, float]]:
    """Seconds of a plain step, of a profiled one, and of the parts of the latter: means, since only means add up."""
    step()
    step()
    plain, profiled, total = 0.0, 0.0, defaultdict[str, float](float)
    for _ in range(turns):
        plain += _once(step)
        with timed_library() as native:
            seconds, parts = _profiled(step)
        profiled += seconds
        for name, value in [*native.items(), *parts.items()]:
            total[name] += value
    return plain / turns, profiled / turns, {name: value / turns for name, value in total.items()}


def _once(step: TrainingStep) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _profiled(step: TrainingStep) -> tuple[float, dict[str, float]]:
    """One step under torch's profiler, which watches what is not the optimiser."""
    start = time.perf_counter()
    with step.sampled():
        entered = time.perf_counter()
        with torch_profile(activities=[ProfilerActivity.CPU]) as watched:
            began = time.perf_counter()
            step.loss().backward()
            ended = time.perf_counter()
        left = time.perf_counter()
    step.update()
    end = time.perf_counter()
    parts = torch_parts(watched.key_averages())
    parts[OPTIMISER] = (entered - start) + (end - left)
    return parts[OPTIMISER] + ended - began, parts


def torch_parts(averages: Any) -> dict[str, float]:
    """Seconds of torch's own operators by part. Those that call a native kernel are Python around it."""
    parts = defaultdict[str, float](float)
    for event in averages:
        if event.key.startswith("aten::"):
            parts[_part(event.key, _TORCH, OTHER)] += 1e-6 * event.self_cpu_time_total
    return dict(parts)


def _part(name: str, parts: dict[str, str], otherwise: str) -> str:
    return next((part for key, part in parts.items() if key in name), otherwise)


@contextmanager
def timed_library() -> Iterator[dict[str, float]]:
    """Inside, the seconds of every function of the native library add up by part; those of IVON are the optimiser's."""
    parts, compiled = defaultdict[str, float](float), library()
    plain = {name: getattr(compiled, name) for name in FUNCTIONS if "ivon" not in name}

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        part = _part(name, _NATIVE, "other native kernels")

        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = function(*arguments)
            taken = time.perf_counter() - start
            packing = 1e-9 * compiled.ssvi_packing_time(True)
            parts[part] += taken - packing
            if packing:
                parts[_PACKING[part]] += packing
            return result

        return call

    try:
        compiled.ssvi_packing_time(True)
        for name, function in plain.items():
            setattr(compiled, name, timed(name, function))
        yield parts
    finally:
        compiled.ssvi_packing_time(False)
        for name, function in plain.items():
            setattr(compiled, name, function)
