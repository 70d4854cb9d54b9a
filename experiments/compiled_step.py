"""Whether a compiler that replays the step takes Python out of it: IVON on a narrow ResNet-18, plain and compiled by torch.

    python experiments/compiled_step.py --batches 1,16,128 --turns 7

The sides take turns in one process; what is measured is the time of the processor on one thread, which other work of the
machine changes less than the clock's. docs/kernels.md has what it printed. Some minutes, most of them inductor's.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median

import click
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi.cli.options import values_of
from ssvi.kernels.native.allocator import tune_malloc
from ssvi.nn.models import resnet18

SIDES: dict[str, Callable[[nn.Module], Callable[..., torch.Tensor]]] = {
    "as it is": lambda bnn: bnn,
    "aot_eager": lambda bnn: torch.compile(bnn, backend="aot_eager"),
    "inductor": lambda bnn: torch.compile(bnn),
}
"""The network as the training loop calls it."""
IMAGES_OF_A_TURN = 500
MOST_STEPS = 30


def trainer(side: str, batch: int, width: int) -> Callable[[], None]:
    """One step of training at one theta on random images, the optimiser included."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(resnet18(width=width), 0.05)
    optimizer, network = ssvi.IVON(bnn, train_size=50_000), SIDES[side](bnn)
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))

    def step() -> None:
        with optimizer.sampled():
            F.cross_entropy(network(x), y).backward()
        optimizer.step()

    for _ in range(4):  # compiles both passes, and fills the caches
        step()
    return step


def milliseconds(step: Callable[[], None], steps: int) -> float:
    """Processor time of a step, on average over a turn."""
    start = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - start) / steps * 1e3


def compare(batch: int, turns: int, width: int) -> dict[str, float]:
    """The median of the turns of each side."""
    trainers = {side: trainer(side, batch, width) for side in SIDES}
    steps = min(MOST_STEPS, max(4, IMAGES_OF_A_TURN // batch))
    times = [{side: milliseconds(step, steps) for side, step in trainers.items()} for _ in range(turns)]
    torch.compiler.reset()
    return {side: median(turn[side] for turn in times) for side in SIDES}


@click.command()
@click.option("--batches", default="1,16,128", show_default=True, help="images of a step")
@click.option("--turns", default=7, show_default=True, help="of each side")
@click.option("--width", default=16, show_default=True, help="of the ResNet-18")
def main(batches: str, turns: int, width: int) -> None:
    """A line for each batch size: milliseconds of a step."""
    warnings.simplefilter("ignore", ssvi.TrainingWarning)  # random labels are not learnt
    torch.set_num_threads(1)
    tune_malloc()
    sizes = values_of("--batches", batches, int, "whole numbers such as 1,16")
    click.echo(f"| batch | {' | '.join(SIDES)} |\n|{'---|' * (1 + len(SIDES))}")
    for batch in sizes:
        click.echo(f"| {batch} | {' | '.join(f'{ms:.1f}' for ms in compare(batch, turns, width).values())} |")


if __name__ == "__main__":
    main()
