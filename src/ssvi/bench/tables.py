"""The tables of `ssvi bench`: which sides take turns, and what is computed from their seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ssvi.bench import cases
from ssvi.bench.measure import interleaved, peak_memory
from ssvi.bench.results import Benchmark, Conditions, MemoryRow, RatioRow, ScalingRow, SparseTime, UpdateRow
from ssvi.kernels import native
from ssvi.training.machine import this_machine

DENSITIES = (0.10, 0.05, 0.01)
LAYERS = ((64, 32), (128, 16), (256, 8), (512, 4))
"""Channels, and height and width, of the 3x3 layers: those of ResNet-18 for CIFAR."""
LINEAR = (1024, 4096)
"""Inputs and outputs of the linear layers."""

Say = Callable[[str], None]
"""A function that tells the user what is measured now."""


def layers(turns: int, say: Say) -> list[RatioRow]:
    """3x3 convolutions, forward and backward, against the faster memory format of dense VI."""
    rows = []
    for channels, side in LAYERS:
        say(f"3x3 layer, {channels} channels on {side} x {side}")
        shape = (cases.BATCH, channels, side, side)
        sides = _dense_formats(channels, shape)
        sides |= {f"{d}": cases.layer_step(_conv(channels), shape, d) for d in DENSITIES}
        rows.append(_against_dense(f"3x3 conv {channels}@{side}", interleaved(sides, turns), ("nchw", "nhwc")))
    return rows


def linear(turns: int, say: Say) -> list[RatioRow]:
    """Fully connected layers, forward and backward."""
    rows = []
    for width in LINEAR:
        say(f"Linear {width}-{width}")
        shape = (cases.BATCH, width)
        sides = {"dense": cases.layer_step(nn.Linear(width, width), shape, None)}
        sides |= {f"{d}": cases.layer_step(nn.Linear(width, width), shape, d) for d in DENSITIES}
        rows.append(_against_dense(f"linear {width}-{width}", interleaved(sides, turns), ("dense",)))
    return rows


def step(turns: int, say: Say) -> list[RatioRow]:
    """The whole training step of ResNet-18, against dense VI and against the deterministic network.

    A sparse step carries its share of the updates of gamma: 1/100 of what a step with an update takes longer.
    """
    say("whole training step of ResNet-18 (the long one)")
    dense, deterministic = ("dense-nchw", "dense-nhwc"), ("deterministic-nchw", "deterministic-nhwc")
    sides = {kind: cases.training_step(kind) for kind in (*dense, *deterministic)}
    sides |= {f"{d}": cases.training_step("sparse", d) for d in DENSITIES}
    sides |= {f"update {d}": cases.training_step("sparse", d, every=1) for d in DENSITIES}
    seconds = interleaved(sides, turns)
    seconds |= {f"{d}": seconds[f"{d}"] + (seconds[f"update {d}"] - seconds[f"{d}"]) / cases.EVERY for d in DENSITIES}
    rows = []
    for title, kinds in (("dense VI", dense), ("deterministic", deterministic)):
        layout = min(kinds, key=lambda kind: seconds[kind]).partition("-")[2]
        row = _against_dense("ResNet-18 training step", seconds, kinds)
        rows.append(replace(row, dense=f"{title} ({layout})"))
    return rows


def prediction(turns: int, say: Say) -> list[RatioRow]:
    """Five samples of a batch."""
    say("prediction with 5 samples")
    sides = {"dense": cases.prediction(None)} | {f"{d}": cases.prediction(d) for d in DENSITIES}
    row = _against_dense("ResNet-18, 5-sample prediction", interleaved(sides, turns), ("dense",))
    return [replace(row, dense="dense weights, 5 samples")]


def update(turns: int, say: Say) -> list[UpdateRow]:
    """What an update of gamma adds to a step, and to training with every=100."""
    say("update of gamma")
    sides = {"step": cases.training_step("sparse", 0.05), "update": cases.training_step("sparse", 0.05, every=1)}
    seconds = interleaved(sides, turns)
    extra = seconds["update"] - seconds["step"]
    return [UpdateRow("update of gamma, ResNet-18 at 95 %", 1e3 * extra, extra / (cases.EVERY * seconds["step"]))]


def memory(turns: int, say: Say) -> list[MemoryRow]:
    """Peak memory of two training steps, each network in a process of its own. One turn is enough: `turns` is not used."""
    say("peak memory (a fresh process each)")
    networks = {"dense": ("dense", 1.0), "deterministic": ("deterministic", 1.0)}
    networks |= {f"sparse, {1 - d:.0%}": ("sparse", d) for d in DENSITIES}
    return [MemoryRow(what, peak_memory(kind, density) / 2**20) for what, (kind, density) in networks.items()]


def scaling(turns: int, say: Say) -> list[ScalingRow]:
    """How the cost of one layer grows with batch, width and density."""
    say("scaling")
    rows = []
    for batch, channels, density in _grid():
        shape = (batch, channels, 16, 16)
        sides = _dense_formats(channels, shape) | {"sparse": cases.layer_step(_conv(channels), shape, density)}
        seconds = interleaved(sides, max(3, turns // 2))
        dense, sparse = min(seconds["nchw"], seconds["nhwc"]), seconds["sparse"]
        rows.append(ScalingRow(batch, channels, density, 1e3 * dense, 1e3 * sparse, dense / sparse))
    return rows


def _grid() -> list[tuple[int, int, float]]:
    by_batch = [(batch, 128, 0.05) for batch in (1, 8, 32, 128, 256)]
    by_width = [(128, channels, 0.05) for channels in (16, 32, 64, 256)]
    by_density = [(128, 128, density) for density in (0.5, 0.25, 0.2, 0.1, 0.02, 0.01, 0.002)]
    return by_batch + by_width + by_density


def _conv(channels: int) -> nn.Conv2d:
    return nn.Conv2d(channels, channels, 3, padding=1, bias=False)


def _dense_formats(channels: int, shape: tuple[int, ...]) -> dict[str, cases.Work]:
    """Dense VI of a 3x3 layer in both memory formats."""
    return {
        "nchw": cases.layer_step(_conv(channels), shape, None),
        "nhwc": cases.layer_step(_conv(channels), shape, None, channels_last=True),
    }


def _against_dense(what: str, seconds: dict[str, float], dense: tuple[str, ...]) -> RatioRow:
    """Milliseconds, ratios, and the share of the limit density x dense that is reached."""
    best = min(dense, key=lambda side: seconds[side])
    ratios = {d: seconds[best] / seconds[f"{d}"] for d in DENSITIES}
    by_density = {d: SparseTime(1e3 * seconds[f"{d}"], ratio, ratio * d) for d, ratio in ratios.items()}
    return RatioRow(what, f"dense VI ({best})", 1e3 * seconds[best], by_density)


Rows = list[RatioRow] | list[UpdateRow] | list[MemoryRow] | list[ScalingRow]

TABLES: dict[str, Callable[[int, Say], Rows]] = {  # by the field of `Benchmark`
    "layers": layers,
    "linear": linear,
    "step": step,
    "prediction": prediction,
    "update": update,
    "memory": memory,
    "scaling": scaling,
}


def run(names: tuple[str, ...], turns: int, say: Say) -> Iterator[Benchmark]:
    """Measure the tables that were asked for; after each one, everything so far."""
    conditions = Conditions(
        date=time.strftime("%Y-%m-%d"),
        turns=turns,
        batch=cases.BATCH,
        machine=this_machine(),
        isa=native.isa(),
        threads=torch.get_num_threads(),
    )
    benchmark = Benchmark(conditions)
    for name in names:
        table: dict[str, Any] = {name: tuple(TABLES[name](turns, say))}
        benchmark = replace(benchmark, **table)
        yield benchmark
