"""How long lr of IVON should rise by itself: pretrained and fresh networks by its defaults, on validation images of digits.

    python experiments/slow_start.py --warmups 0,100 --seeds 3

300 images of the training part are held out; no test image is looked at. docs/ivon.md has what it printed.
"""

import warnings
from collections.abc import Callable
from statistics import fmean

import click
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi.data import load
from ssvi.nn.models import lenet

Examples = tuple[Tensor, Tensor]
BATCH = 32


def examples(held_out: int = 300) -> tuple[Examples, Examples]:
    """Training and validation images."""
    digits = load("digits")
    order = torch.randperm(len(digits.train), generator=torch.Generator().manual_seed(0))
    x, y = digits.normalise(digits.train.x)[order], digits.train.y[order]
    return (x[held_out:], y[held_out:]), (x[:held_out], y[:held_out])


def batches(train: Examples, epochs: int) -> list[Examples]:
    """The batches of all epochs; the last one of an epoch is left out if it is smaller."""
    x, y = train
    orders = [torch.randperm(len(x)) for _ in range(epochs)]
    return [(x[b], y[b]) for order in orders for b in order.split(BATCH) if len(b) == BATCH]


def plainly_trained(train: Examples) -> nn.Module:
    """A LeNet after eight epochs of SGD."""
    net, steps = lenet(size=8, width=32), batches(train, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(steps))
    for x, y in steps:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        schedule.step()
    return net.eval()


def pretrained(train: Examples) -> nn.Module:
    """A tenth of the weights of a trained network: the largest ones."""
    return ssvi.to_bnn(plainly_trained(train), 0.1, keep_dense=("0",), support="magnitude")


def convolutions(train: Examples) -> nn.Module:
    """A fresh LeNet."""
    return ssvi.to_bnn(lenet(size=8, width=32), 0.05, keep_dense=("0",))


def perceptron(train: Examples) -> nn.Module:
    """A fresh network without normalisation."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return ssvi.to_bnn(net, 0.1)


CASES: dict[str, tuple[Callable[[Examples], nn.Module], int, float]] = {
    "pretrained": (pretrained, 6, 1.0),
    "pretrained, temperature 0.1": (pretrained, 6, 0.1),
    "fresh LeNet": (convolutions, 20, 1.0),
    "fresh MLP": (perceptron, 20, 1.0),
}
"""The network, its epochs and its temperature."""


def trained(bnn: nn.Module, train: Examples, epochs: int, temperature: float, warmup: int) -> nn.Module:
    """The loop of the README."""
    steps = batches(train, epochs)
    optimizer = ssvi.IVON(bnn.train(), train_size=len(train[0]), warmup=warmup, temperature=temperature)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(steps))
    subspace = ssvi.Subspace(bnn, optimizer, every=20, rate=0.1)
    for x, y in steps:
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        schedule.step()
        subspace.step()
    ssvi.fit_batchnorm(bnn, [x for x, _ in steps[:8]], samples=10)
    return bnn.eval()


def quality(case: str, warmup: int, seed: int) -> tuple[float, float]:
    """Accuracy and NLL on the validation images."""
    make, epochs, temperature = CASES[case]
    train, (x, y) = examples()
    torch.manual_seed(seed)
    probs = ssvi.predict(trained(make(train), train, epochs, temperature, warmup), x, samples=10)
    return ssvi.metrics.accuracy(probs, y), ssvi.metrics.nll(probs, y)


@click.command()
@click.option("--warmups", default="0,100", show_default=True, help="steps in which lr rises")
@click.option("--seeds", default=3, show_default=True, help="networks of each kind")
def main(warmups: str, seeds: int) -> None:
    """A line for each case and warm-up."""
    warnings.simplefilter("ignore", ssvi.TrainingWarning)  # what is told is what is measured here
    torch.set_num_threads(1)
    click.echo("| network | warmup | validation accuracy | NLL |\n| --- | --- | --- | --- |")
    for case in CASES:
        for warmup in map(int, warmups.split(",")):
            accuracies, losses = zip(*(quality(case, warmup, seed) for seed in range(seeds)), strict=True)
            click.echo(f"| {case} | {warmup} | {fmean(accuracies):.1%} | {fmean(losses):.3f} |")


if __name__ == "__main__":
    main()
