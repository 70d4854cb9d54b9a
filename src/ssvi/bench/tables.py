"""The tables of `ssvi bench`: which sides take turns, and what is computed from their seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ssvi.bench import cases, steps
from ssvi.bench.measure import interleaved, peak_memory
from ssvi.bench.one_theta import one_theta
from ssvi.bench.profile import profile
from ssvi.bench.ratios import DENSITIES, Say, against_dense, charge_updates, with_updates
from ssvi.bench.results import (
    Benchmark,
    Conditions,
    MemoryRow,
    ProfileRow,
    RatioRow,
    ScalingRow,
    SmallRow,
    UpdateRow,
)
from ssvi.bench.small import small
from ssvi.kernels import native
from ssvi.training.machine import this_machine

LAYERS = ((64, 32), (128, 16), (256, 8), (512, 4))
"""Channels, and height and width, of the 3x3 layers: those of ResNet-18 for CIFAR."""
LINEAR = (1024, 4096)
"""Inputs and outputs of the linear layers."""


def layers(turns: int, say: Say) -> list[RatioRow]:
    """3x3 convolutions, forward and backward, against the faster memory format of dense VI."""
    rows = []
    for channels, side in LAYERS:
        say(f"3x3 layer, {channels} channels on {side} x {side}")
        shape = (cases.BATCH, channels, side, side)
        sides = _dense_formats(channels, shape)
        sides |= {f"{d}": cases.layer_step(_conv(channels), shape, d) for d in DENSITIES}
        seconds = interleaved(sides, turns)
        rows.append(against_dense(f"3x3 conv {channels}@{side}", "dense VI", seconds, ("nchw", "nhwc")))
    return rows


def linear(turns: int, say: Say) -> list[RatioRow]:
    """Fully connected layers, forward and backward."""
    rows = []
    for width in LINEAR:
        say(f"Linear {width}-{width}")
        shape = (cases.BATCH, width)
        sides = {"dense": cases.layer_step(nn.Linear(width, width), shape, None)}
        sides |= {f"{d}": cases.layer_step(nn.Linear(width, width), shape, d) for d in DENSITIES}
        aims = {0.10: 4.5, 0.05: 8.0, 0.01: 15.0} if width == 1024 else {}
        what = f"Linear {width}, local reparameterisation"
        rows.append(against_dense(what, "dense VI", interleaved(sides, turns), ("dense",), aims=aims))
    return rows


def step(turns: int, say: Say) -> list[RatioRow]:
    """The whole training step of ResNet-18 by local reparameterisation, against dense VI and the deterministic network.

    A sparse step carries its share of the updates of gamma: 1/100 of what a step with an update takes longer.
    """
    say("whole training step of ResNet-18 by local reparameterisation (the long one)")
    dense, plain = ("vi-nchw", "vi-nhwc"), ("deterministic-nchw", "deterministic-nhwc")
    sides: dict[str, cases.Work] = {kind: steps.training_step(kind) for kind in (*dense, *plain)}
    seconds = interleaved(sides | with_updates("lrt"), turns)
    charge_updates(seconds)
    what = "ResNet-18 step, local reparameterisation"
    return [
        against_dense(what, "dense VI", seconds, dense, aims={0.10: 6.5, 0.05: 10, 0.01: 16}),
        against_dense(what, "deterministic", seconds, plain),
    ]


def prediction(turns: int, say: Say) -> list[RatioRow]:
    """Five samples of a batch."""
    say("prediction with 5 samples")
    sides = {"5 samples": cases.prediction(None)} | {f"{d}": cases.prediction(d) for d in DENSITIES}
    aims = {0.10: 4.0, 0.05: 7.0, 0.01: 14.0}
    seconds = interleaved(sides, turns)
    return [against_dense("ResNet-18, 5-sample prediction", "dense weights", seconds, ("5 samples",), aims=aims)]


def update(turns: int, say: Say) -> list[UpdateRow]:
    """What an update of gamma adds to a step, and to training with every=100."""
    say("update of gamma")
    rows = []
    for kind, what in (("lrt", "local reparameterisation"), ("point", "one theta")):
        sides = {"step": steps.training_step(kind, 0.05), "update": steps.training_step(kind, 0.05, every=1)}
        seconds = interleaved(sides, turns)
        extra = seconds["update"] - seconds["step"]
        share = extra / (steps.EVERY * seconds["step"])
        rows.append(UpdateRow(f"update of gamma, ResNet-18 at 95 %, {what}", 1e3 * extra, share))
    return rows


def memory(turns: int, say: Say) -> list[MemoryRow]:
    """Peak memory of two training steps, each network in a process of its own. One turn is enough: `turns` is not used."""
    say("peak memory (a fresh process each)")
    networks = {"dense VI": ("vi", 1.0), "deterministic": ("deterministic", 1.0)}
    networks |= {f"local reparameterisation, {1 - d:.0%}": ("lrt", d) for d in DENSITIES}
    networks |= {"one theta, 95%": ("point", 0.05), "IVON, 95%": ("ivon", 0.05)}
    networks |= {"deterministic, bfloat16": ("deterministic-bf16", 1.0)}
    networks |= {"one theta, bfloat16, 95%": ("point-bf16", 0.05), "IVON, bfloat16, 95%": ("ivon-bf16", 0.05)}
    aims = {"one theta, 95%": 0.6, "IVON, 95%": 0.6}
    return [
        MemoryRow(what, peak_memory(kind, density) / 2**20, aims.get(what))
        for what, (kind, density) in networks.items()
    ]


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


Rows = list[RatioRow] | list[UpdateRow] | list[MemoryRow] | list[ScalingRow] | list[ProfileRow] | list[SmallRow]

TABLES: dict[str, Callable[[int, Say], Rows]] = {  # by the field of `Benchmark`
    "one_theta": one_theta,
    "step": step,
    "prediction": prediction,
    "linear": linear,
    "layers": layers,
    "update": update,
    "memory": memory,
    "profile": profile,
    "small": small,
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
