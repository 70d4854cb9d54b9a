"""The kernels of every instruction set, timed against torch with the same instructions: the table of docs/packages.md.

    python experiments/instruction_sets.py [--threads 1] [--turns 7]

Each set runs in a process of its own, in which torch, oneDNN and MKL are limited as our kernels are. Within it the two sides
take turns. What is measured is the time of the processor, which other work of the machine changes less than the clock's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median

import click
import torch
from torch import nn

from ssvi.bench.cases import Work, layer_step
from ssvi.kernels import native
from ssvi.nn.convert import to_bnn

SETS = {
    "x86_64_v4": ("avx512", "AVX512_CORE", "AVX512"),
    "x86_64_v3": ("avx2", "AVX2", "AVX2"),
    "x86_64": ("default", "SSE41", "SSE4_2"),
}
"""What ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA and MKL_ENABLE_INSTRUCTIONS are for the kernels of each set."""

BATCH, DENSITY = 32, 0.05
LAYERS = {
    "Conv 64, 32 x 32": (lambda: nn.Conv2d(64, 64, 3, padding=1, bias=False), (BATCH, 64, 32, 32)),
    "Conv 256, 8 x 8": (lambda: nn.Conv2d(256, 256, 3, padding=1, bias=False), (BATCH, 256, 8, 8)),
    "Linear 1024": (lambda: nn.Linear(1024, 1024, bias=False), (BATCH, 1024)),
}


def step(layer: nn.Module, shape: tuple[int, ...], channels_last: bool = False) -> Work:
    """Forward and backward through a layer with one theta."""
    x = torch.randn(shape)
    if channels_last:
        x, layer = x.contiguous(memory_format=torch.channels_last), layer.to(memory_format=torch.channels_last)
    x.requires_grad_()
    with torch.no_grad():
        grad = torch.randn_like(layer(x))

    def work() -> None:
        x.grad = None
        layer.zero_grad()
        layer(x).backward(grad)

    return work


def sides(name: str) -> dict[str, Work]:
    """The kernels and torch, with one theta and with local reparameterisation; torch in both of its layouts."""
    make, shape = LAYERS[name]
    layouts = {"nchw": False, "nhwc": True} if len(shape) == 4 else {"nchw": False}
    work = {
        "one theta": step(to_bnn(make(), DENSITY, point=True, seed=0), shape),
        "LRT": layer_step(make(), shape, DENSITY),
    }
    work |= {f"plain {layout}": step(make(), shape, nhwc) for layout, nhwc in layouts.items()}
    work |= {f"VI {layout}": layer_step(make(), shape, None, channels_last=nhwc) for layout, nhwc in layouts.items()}
    return work


def processor_seconds(work: dict[str, Work], turns: int) -> dict[str, float]:
    """The time of the processor that each side takes, of all its threads: the median of its turns, after one to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(turns + 1):
        for name, side in work.items():
            start = time.process_time()
            side()
            seconds[name].append(time.process_time() - start)
    return {name: median(values[1:]) for name, values in seconds.items()}


def measure(threads: int, turns: int) -> list[tuple[str, float, float, float, float]]:
    """For each layer: milliseconds with one theta, times faster than the plain layer; the same of LRT and dense VI."""
    torch.set_num_threads(threads)
    rows = []
    for name in LAYERS:
        seconds = processor_seconds(sides(name), turns)
        plain, vi = (min(value for key, value in seconds.items() if key.startswith(kind)) for kind in ("plain", "VI"))
        theta, lrt = seconds["one theta"], seconds["LRT"]
        rows.append((name, 1000 * theta, plain / theta, 1000 * lrt, vi / lrt))
    return rows


def in_a_process(name: str, threads: int, turns: int) -> list[tuple[str, float, float, float, float]]:
    """The rows of one instruction set."""
    capability, onednn, mkl = SETS[name]
    limits = {"ATEN_CPU_CAPABILITY": capability, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl}
    command = [sys.executable, __file__, "--only", name, "--threads", str(threads), "--turns", str(turns)]
    done = subprocess.run(command, env=os.environ | limits, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


@click.command()
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--turns", type=click.IntRange(min=1), default=7, show_default=True, help="of each side; the median counts"
)
@click.option("--only", hidden=True, help="measure here, in a process with the limits of this set")
def main(threads: int, turns: int, only: str | None) -> None:
    """Print the table, as Markdown."""
    if only is not None:
        if native.isa() != only:
            raise click.ClickException(f"the kernels in use are {native.isa()}, not {only}: this processor lacks them")
        click.echo(json.dumps(measure(threads, turns)))
        return
    click.echo(
        "| kernels | layer | one theta | against the plain layer | LRT | against dense VI |\n|---|---|---|---|---|---|"
    )
    for name in SETS:
        for layer, theta, faster, lrt, faster_vi in in_a_process(name, threads, turns):
            click.echo(f"| {name} | {layer} | {theta:.1f} ms | {faster:.1f}x | {lrt:.1f} ms | {faster_vi:.1f}x |")


if __name__ == "__main__":
    main()
