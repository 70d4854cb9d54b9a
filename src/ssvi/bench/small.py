"""Small batches, narrow networks, one thread, and a machine whose other core is taken: are we slower than torch's layers?

Each case has three sides: torch's own layer in its faster memory format, ours by the dense kernel (theta is scattered into a
dense weight), and ours by the kernel that the rule chooses. All do one forward and one backward pass at one theta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import nn

from ssvi import kernels
from ssvi.bench.cases import Work, forward_and_backward
from ssvi.bench.measure import interleaved, taken_core
from ssvi.bench.ratios import Say
from ssvi.bench.results import SmallRow
from ssvi.bench.steps import training_step
from ssvi.nn.convert import to_bnn
from ssvi.nn.layers import LinearMap

BATCHES = (1, 4, 16)
DENSITY = 0.05
LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "3x3 conv 16@32": (lambda: nn.Conv2d(16, 16, 3, padding=1, bias=False), (16, 32, 32)),
    "3x3 conv 64@8": (lambda: nn.Conv2d(64, 64, 3, padding=1, bias=False), (64, 8, 8)),
    "3x3 conv 128@4": (lambda: nn.Conv2d(128, 128, 3, padding=1, bias=False), (128, 4, 4)),
    "Linear 512": (lambda: nn.Linear(512, 512), (512,)),
}
"""Layers, and the inputs of one example: the layers of a ResNet-18 of width 16, and a layer of an MLP."""


def small(turns: int, say: Say) -> list[SmallRow]:
    """Every case under every condition of `_conditions`."""
    rows = []
    for what, threads in _conditions():
        with _running(threads, taken="taken" in what):
            for batch in BATCHES:
                say(f"small layers, batch {batch}, {what}")
                rows += [_layer(name, what, batch, turns) for name in LAYERS]
                rows.append(_network(what, batch, turns))
    return rows


def _conditions() -> list[tuple[str, int]]:
    """What is said of the threads, and their number. Several threads also run beside a process that takes a core."""
    several = torch.get_num_threads()
    conditions = [("1 thread", 1)]
    if several > 1:
        conditions += [(f"{several} threads", several), (f"{several} threads, a core taken", several)]
    return conditions


@contextmanager
def _running(threads: int, *, taken: bool) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with taken_core() if taken else nullcontext():
            yield
    finally:
        torch.set_num_threads(before)


def _layer(name: str, threads: str, batch: int, turns: int) -> SmallRow:
    make, example = LAYERS[name]
    shape = (batch, *example)
    sides = {"plain": forward_and_backward(make(), shape)}
    if len(example) == 3:
        sides["plain-nhwc"] = forward_and_backward(make(), shape, channels_last=True)
    ours = to_bnn(make(), DENSITY, point=True, seed=0)
    assert isinstance(ours, LinearMap)
    work = forward_and_backward(ours, shape)
    sides |= {"scatter": _by_dense_kernel(work), "ours": work}
    kernel = kernels.chosen(torch.empty(shape), ours.geometry, ours.posterior.s)
    return _row(name, threads, batch, kernel, interleaved(sides, 5 * turns))


def _network(threads: str, batch: int, turns: int) -> SmallRow:
    """A whole step, with optimiser: here Python weighs most."""
    step = training_step("point", DENSITY, width=16, batch=batch)
    sides: dict[str, Work] = {
        "plain": training_step("deterministic-nchw", width=16, batch=batch),
        "plain-nhwc": training_step("deterministic-nhwc", width=16, batch=batch),
        "scatter": training_step("scatter", DENSITY, width=16, batch=batch),
        "ours": step,
    }
    return _row("ResNet-18 step, width 16", threads, batch, "auto", interleaved(sides, turns))


def _by_dense_kernel(work: Work) -> Work:
    def by_dense_kernel() -> None:
        with kernels.use("dense"):
            work()

    return by_dense_kernel


def _row(what: str, threads: str, batch: int, kernel: str, seconds: dict[str, float]) -> SmallRow:
    plain = min(value for name, value in seconds.items() if name.startswith("plain"))
    return SmallRow(what, threads, batch, kernel, 1e3 * plain, 1e3 * seconds["scatter"], 1e3 * seconds["ours"])
