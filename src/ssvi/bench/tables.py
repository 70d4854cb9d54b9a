"""The tables of `ssvi bench`, as numbers and as the page docs/performance.md."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from ssvi.bench import cases
from ssvi.bench.measure import interleaved, peak_memory
from ssvi.kernels import native
from ssvi.training.run_folder import machine

DENSITIES = (0.10, 0.05, 0.01)
LAYERS = ((64, 32), (128, 16), (256, 8), (512, 4))
LINEAR = (1024, 4096)
Row = dict[str, Any]
Say = Callable[[str], None]


def layers(turns: int, say: Say) -> list[Row]:
    """3x3 convolutions, forward and backward, against the faster memory format of dense VI."""
    rows = []
    for channels, side in LAYERS:
        say(f"3x3 layer, {channels} channels on {side} x {side}")
        shape = (cases.BATCH, channels, side, side)
        make = lambda c=channels: nn.Conv2d(c, c, 3, padding=1, bias=False)  # noqa: E731
        sides = {
            "nchw": cases.layer_step(make(), shape, None, False),
            "nhwc": cases.layer_step(make(), shape, None, True),
        }
        sides |= {f"{d}": cases.layer_step(make(), shape, d, False) for d in DENSITIES}
        rows.append(_against_dense(f"3x3 conv {channels}@{side}", interleaved(sides, turns).seconds, ("nchw", "nhwc")))
    return rows


def linear(turns: int, say: Say) -> list[Row]:
    """Fully connected layers, forward and backward."""
    rows = []
    for width in LINEAR:
        say(f"Linear {width}-{width}")
        sides = {"dense": cases.layer_step(nn.Linear(width, width), (cases.BATCH, width), None, False)}
        sides |= {f"{d}": cases.layer_step(nn.Linear(width, width), (cases.BATCH, width), d, False) for d in DENSITIES}
        rows.append(_against_dense(f"linear {width}-{width}", interleaved(sides, turns).seconds, ("dense",)))
    return rows


def _against_dense(name: str, seconds: dict[str, float], dense: tuple[str, ...]) -> Row:
    """Milliseconds, ratios, and the share of the limit density x dense that is reached."""
    best = min(dense, key=lambda side: seconds[side])
    row: Row = {"what": name, "dense": f"dense VI ({best})", "dense_ms": 1e3 * seconds[best]}
    for d in DENSITIES:
        ratio = seconds[best] / seconds[f"{d}"]
        row[f"{d}"] = {"ms": 1e3 * seconds[f"{d}"], "ratio": ratio, "of_limit": ratio * d}
    return row


def step(turns: int, say: Say) -> list[Row]:
    """The whole training step of ResNet-18, against dense VI and against the deterministic network.

    A sparse step carries its share of the updates of gamma: 1/100 of what a step with an update takes longer.
    """
    say("whole training step of ResNet-18 (the long one)")
    kinds = ("dense-nchw", "dense-nhwc", "deterministic-nchw", "deterministic-nhwc")
    sides = {kind: cases.training_step(kind) for kind in kinds}
    sides |= {f"{d}": cases.training_step("sparse", d) for d in DENSITIES}
    sides |= {f"update {d}": cases.update_step(d) for d in DENSITIES}
    seconds = interleaved(sides, turns).seconds
    seconds |= {f"{d}": seconds[f"{d}"] + (seconds[f"update {d}"] - seconds[f"{d}"]) / cases.EVERY for d in DENSITIES}
    rows = [_against_dense("ResNet-18 training step", seconds, kinds[:2])]
    rows.append(_against_dense("ResNet-18 training step", seconds, kinds[2:]))
    for row, what in zip(rows, ("dense VI", "deterministic"), strict=True):
        row["dense"] = row["dense"].replace("dense VI (", f"{what} (").replace(f"{what.split()[0]}-", "")
    return rows


def prediction(turns: int, say: Say) -> list[Row]:
    """Five samples of a batch."""
    say("prediction with 5 samples")
    sides = {"dense": cases.prediction(None)} | {f"{d}": cases.prediction(d) for d in DENSITIES}
    row = _against_dense("ResNet-18, 5-sample prediction", interleaved(sides, turns).seconds, ("dense",))
    return [row | {"dense": "dense weights, 5 samples"}]


def update(turns: int, say: Say) -> list[Row]:
    """What an update of gamma adds to a step, and to training with every=100."""
    say("update of gamma")
    found = interleaved({"step": cases.training_step("sparse", 0.05), "update": cases.update_step(0.05)}, turns)
    extra = found.seconds["update"] - found.seconds["step"]
    share = extra / (cases.EVERY * found.seconds["step"])
    return [{"what": "update of gamma, ResNet-18 at 95 %", "extra_ms": 1e3 * extra, "share_of_training": share}]


def memory(turns: int, say: Say) -> list[Row]:
    """Peak memory of two training steps, each in a process of its own."""
    say("peak memory (a fresh process each)")
    return [
        {"what": kind if kind != "sparse" else f"sparse, {1 - d:.0%}", "MB": peak_memory(kind, d) / 2**20}
        for kind, d in (("dense", 1.0), ("deterministic", 1.0), *(("sparse", d) for d in DENSITIES))
    ]


def scaling(turns: int, say: Say) -> list[Row]:
    """How the cost of one layer grows with batch, width and density."""
    say("scaling")
    rows = []
    for batch, channels, density in _grid():
        shape = (batch, channels, 16, 16)
        make = lambda c=channels: nn.Conv2d(c, c, 3, padding=1, bias=False)  # noqa: E731
        sides = {
            "nchw": cases.layer_step(make(), shape, None, False),
            "nhwc": cases.layer_step(make(), shape, None, True),
            "sparse": cases.layer_step(make(), shape, density, False),
        }
        seconds = interleaved(sides, max(3, turns // 2)).seconds
        best = min(seconds["nchw"], seconds["nhwc"])
        ms = {"dense_ms": 1e3 * best, "sparse_ms": 1e3 * seconds["sparse"]}
        rows.append(
            {"batch": batch, "channels": channels, "density": density} | ms | {"ratio": best / seconds["sparse"]}
        )
    return rows


def _grid() -> list[tuple[int, int, float]]:
    by_batch = [(batch, 128, 0.05) for batch in (1, 8, 32, 128, 256)]
    by_width = [(128, channels, 0.05) for channels in (16, 32, 64, 256)]
    by_density = [(128, 128, density) for density in (0.5, 0.25, 0.2, 0.1, 0.02, 0.01, 0.002)]
    return by_batch + by_width + by_density


PARTS: dict[str, Callable[[int, Say], list[Row]]] = {
    "layers": layers,
    "linear": linear,
    "step": step,
    "prediction": prediction,
    "update": update,
    "memory": memory,
    "scaling": scaling,
}


def run(parts: tuple[str, ...], turns: int, say: Say) -> Iterator[dict[str, Any]]:
    """Measure the parts that were asked for; after each one, everything so far."""
    found: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "turns": turns, "batch": cases.BATCH}
    found |= {"machine": {k: v for k, v in machine().items() if k != "command"}, "isa": native.isa()}
    found |= {"threads": torch.get_num_threads()}
    for part in parts:
        found |= {part: PARTS[part](turns, say)}
        yield found
