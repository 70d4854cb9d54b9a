"""What a structure gains in time: the native kernels on it against any support of the same density, in one run.

    python experiments/structure_speed.py layers          # the convolutions of a ResNet-18, forward and backward
    python experiments/structure_speed.py step            # a whole training step at one theta
    python experiments/structure_speed.py step --density 0.0625 --structures none,1:16

Rounds are interleaved: each round times every case once, and the table has the medians. With one thread it is the time of
the processor that counts, which other programs on a busy machine disturb less than the clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import click
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.nn.models import resnet18
from ssvi.structures import resolve

STRUCTURES = "none,block:4,block:8,block:16"
LAYERS = {  # (outputs, inputs, kernel, stride, size of x): the distinct convolutions of a ResNet-18 of width 64
    "64-64 3x3, 32x32": (64, 64, 3, 1, 32), "64-128 3x3 /2": (128, 64, 3, 2, 32), "128-128 3x3, 16x16": (128, 128, 3, 1, 16),
    "256-256 3x3, 8x8": (256, 256, 3, 1, 8), "512-512 3x3, 4x4": (512, 512, 3, 1, 4), "256-512 1x1 /2": (512, 256, 1, 2, 8),
}  # fmt: skip


@click.group()
def main() -> None:
    """Time structures against any support."""


structures_option = click.option(
    "--structures", default=STRUCTURES, show_default=True, metavar="A,B,...", help="`none` first; N:M has density N/M"
)


def interleaved(cases: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median milliseconds of each case; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for _ in range(rounds + 1):
        for name, case in cases.items():
            start = clock()
            case()
            times[name].append(1e3 * (clock() - start))
    return {name: median(of_case[1:]) for name, of_case in times.items()}


def _layer(structure: str, density: float, outputs: int, inputs: int, kernel: int, stride: int) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return ssvi.to_bnn(conv, density, structure=resolve(structure), point=True, seed=0)


@main.command()
@click.option("--density", default=0.05, show_default=True)
@click.option("--batch", default=128, show_default=True)
@click.option("--rounds", default=9, show_default=True)
@click.option("--threads", default=1, show_default=True)
@structures_option
def layers(density: float, batch: int, rounds: int, threads: int, structures: str) -> None:
    """Milliseconds forward + backward of each convolution, one theta."""
    torch.set_num_threads(threads)
    names = structures.split(",")
    print("| layer |", " | ".join(names), "|\n|---|" + "--:|" * len(names))
    for name, (outputs, inputs, kernel, stride, size) in LAYERS.items():
        x = torch.randn(batch, inputs, size, size, requires_grad=True)
        nets = {s: _layer(s, density, outputs, inputs, kernel, stride) for s in names}
        forward = interleaved({s: partial(net, x) for s, net in nets.items()}, rounds)
        backward = interleaved({s: _backward(net, x) for s, net in nets.items()}, rounds)
        print(f"| {name} |", " | ".join(f"{forward[s]:.2f} + {backward[s]:.2f}" for s in names), "|", flush=True)


def _backward(net: nn.Module, x: torch.Tensor) -> Callable[[], object]:
    y = net(x)
    return partial(torch.autograd.grad, y, [x, *net.parameters()], torch.randn_like(y), retain_graph=True)


@main.command()
@click.option("--density", default=0.05, show_default=True)
@click.option("--width", default=64, show_default=True)
@click.option("--batch", default=128, show_default=True)
@click.option("--rounds", default=5, show_default=True)
@click.option("--threads", default=1, show_default=True)
@click.option("--dense/--no-dense", default=True, help="with deterministic dense training [with it]")
@structures_option
def step(density: float, width: int, batch: int, rounds: int, threads: int, dense: bool, structures: str) -> None:
    """Milliseconds of a training step of a ResNet-18 at one theta: forward, backward, SGD."""
    torch.set_num_threads(threads)
    net = resnet18(width=width)
    nets: dict[str, nn.Module] = {
        s: ssvi.to_bnn(net, density, structure=resolve(s), keep_dense=("conv1",), point=True, seed=0)
        for s in structures.split(",")
    }
    nets |= {"dense": net} if dense else {}
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    times = interleaved({name: _step(of_case, x, y) for name, of_case in nets.items()}, rounds)
    print("| step |", " | ".join(times), "|\n|---|" + "--:|" * len(times))
    print("| ms |", " | ".join(f"{ms:.0f}" for ms in times.values()), "|")
    first = next(iter(times))
    print(f"| {first} / this |", " | ".join(f"{times[first] / ms:.2f}" for ms in times.values()), "|")


def _step(net: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], object]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0, momentum=0.9)

    def run() -> None:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    return run


if __name__ == "__main__":
    main()
