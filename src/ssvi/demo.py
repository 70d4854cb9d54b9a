"""The main job in two minutes, offline: SSVI at 95 % sparsity against dense variational inference on handwritten digits.

    python -m ssvi.demo [--out FOLDER] [--epochs N]

Trains both networks with the same settings (chosen on a validation split), prints one table, and writes one picture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

import ssvi
from ssvi.data import DataSet, digits
from ssvi.demo_picture import draw
from ssvi.models import lenet

BATCH, LEARNING_RATE, EVERY, SAMPLES = 64, 0.05, 20, 10
PRIOR_SIGMA, BETA = 0.2, 0.1


@dataclass
class Run:
    """One trained network and what is told of it."""

    name: str
    bnn: nn.Module
    evaluation: ssvi.Evaluation
    probs: Tensor
    labels: Tensor
    noise_probs: Tensor
    seconds: float
    flops: int
    loss: list[float] = field(default_factory=list)
    nll: list[float] = field(default_factory=list)


def train(
    data: DataSet, density: float, epochs: int, seed: int, report: Callable[[int, float], None]
) -> tuple[nn.Module, list[float], list[float], int]:
    """Algorithm 1 in a loop: the network, loss and NLL of each epoch, and the number of updates of gamma."""
    torch.manual_seed(seed)
    batches = data.batches(data.train, BATCH, seed=seed, drop_last=True)
    steps = epochs * len(batches)
    until = 3 * steps // 4

    net = lenet(size=8)
    bnn = ssvi.to_bnn(net, density, keep_dense=("0",), prior_sigma=PRIOR_SIGMA)
    optimizer = torch.optim.SGD(bnn.parameters(), lr=LEARNING_RATE, momentum=0.9)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    rate = ssvi.schedules.cosine(0.3, steps=max(1, until // EVERY))
    subspace = ssvi.Subspace(bnn, optimizer, every=EVERY, rate=rate, until=until)
    elbo = ssvi.ELBO(bnn, train_size=len(data.train), beta=ssvi.schedules.linear(BETA, steps=max(1, steps // 2)))

    losses, nlls = [], []
    for epoch in range(epochs):
        loss_sum = nll_sum = 0.0
        for x, y in batches.epoch(epoch):
            loss = elbo(F.cross_entropy(bnn(x), y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            decay.step()
            subspace.step()
            loss_sum += loss.item()
            nll_sum += elbo.terms.nll
        losses.append(loss_sum / len(batches))
        nlls.append(nll_sum / len(batches))
        report(epoch, nlls[-1])
    return bnn, losses, nlls, subspace.t


def measure(data: DataSet, name: str, density: float, epochs: int, report: Callable[[int, float], None]) -> Run:
    """Train one network, then evaluate it on the test digits and on noise of the same brightness."""
    start = time.perf_counter()
    bnn, losses, nlls, updates = train(data, density, epochs, seed=0, report=report)
    seconds = time.perf_counter() - start
    x, y = data.normalise(data.test.x), data.test.y
    shuffled = _shuffle_pixels(data.test.x)
    flops = ssvi.flops.training(
        bnn, x[:2], steps=epochs * (len(data.train) // BATCH), batch_size=BATCH,
        updates=updates if density < 1 else 0,
    )  # fmt: skip
    torch.manual_seed(1)
    return Run(
        name, bnn, ssvi.evaluate(bnn, [(x, y)], SAMPLES), ssvi.predict(bnn.eval(), x, SAMPLES), y,
        ssvi.predict(bnn, data.normalise(shuffled), SAMPLES), seconds, flops, losses, nlls,
    )  # fmt: skip


def _shuffle_pixels(x: Tensor) -> Tensor:
    """Noise with the grey levels of digits: each image's own pixels in random order."""
    generator = torch.Generator().manual_seed(0)
    flat = x.flatten(1)
    order = torch.rand(flat.shape, generator=generator).argsort(1)
    return flat.gather(1, order).view_as(x)


def stored_bytes(bnn: nn.Module) -> int:
    """Parameters and indices."""
    tensors = [*bnn.parameters(), *(layer.index for _, layer in ssvi.layers(bnn))]
    return sum(t.numel() * t.element_size() for t in tensors)


def table(runs: list[Run]) -> Table:
    """The comparison, a column per network."""
    made = Table(title=f"Handwritten digits, {runs[0].evaluation.examples} test images, {SAMPLES} samples of theta")
    made.add_column("")
    for run in runs:
        made.add_column(run.name, justify="right")
    rows: list[tuple[str, Callable[[Run], str]]] = [
        ("accuracy", lambda r: f"{r.evaluation.accuracy:.2%}"),
        ("NLL", lambda r: f"{r.evaluation.nll:.4f}"),
        ("ECE (Guo, top label)", lambda r: f"{r.evaluation.ece:.4f}"),
        ("marginal calibration error (the paper's ECE)", lambda r: f"{r.evaluation.marginal_calibration_error:.4f}"),
        (
            "entropy on digits / on noise (nats)",
            lambda r: f"{r.evaluation.entropy:.2f} / {_entropy(r.noise_probs):.2f}",
        ),
        ("sparsity of the sparse layers", lambda r: f"{_sparsity(r.bnn):.1%}"),
        ("bytes (parameters + indices)", lambda r: f"{stored_bytes(r.bnn):,}"),
        ("training FLOPs (arithmetic, not time)", lambda r: f"{r.flops:.3g}"),
        ("seconds to train", lambda r: f"{r.seconds:.1f}"),
    ]
    for label, cell in rows:
        made.add_row(label, *(cell(run) for run in runs))
    return made


def _entropy(probs: Tensor) -> float:
    return ssvi.metrics.entropy(probs).mean().item()


def _sparsity(bnn: nn.Module) -> float:
    sparse = [layer.posterior for _, layer in ssvi.layers(bnn) if layer.density < 1]
    return 1 - sum(p.s for p in sparse) / sum(p.d for p in sparse) if sparse else 0.0


def main() -> None:
    """Train, compare, draw."""
    parser = argparse.ArgumentParser(
        prog="python -m ssvi.demo", description=__doc__.split("\n\n")[0] if __doc__ else ""
    )
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default: out)")
    parser.add_argument("--epochs", type=int, default=80, help="epochs of each network (default: 80)")
    options = parser.parse_args()
    if options.epochs < 1:
        parser.error(f"--epochs {options.epochs} must be at least 1")
    torch.set_num_threads(1)  # these layers are too small to share; two threads would mostly wait for each other
    console, data, runs = Console(), digits(), []
    console.print("Training a small convolutional network twice on the 8x8 digits that come with the package.")
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )
    with bar:
        for name, density in (("SSVI, 95 % sparse", 0.05), ("dense VI", 1.0)):
            task = bar.add_task(f"{name}: NLL  -   ", total=options.epochs)

            def report(epoch: int, nll: float, name: str = name, task: int = task) -> None:
                bar.update(task, completed=epoch + 1, description=f"{name}: NLL {nll:.3f}")  # type: ignore[arg-type]

            runs.append(measure(data, name, density, options.epochs, report))
    console.print(table(runs))
    console.print(f"{_ratio(runs)}\nPicture: [bold]{draw(runs, options.out / 'demo.png')}[/bold]")


def _ratio(runs: list[Run]) -> str:
    sparse, dense = runs
    small, cheap = stored_bytes(dense.bnn) / stored_bytes(sparse.bnn), dense.flops / sparse.flops
    return (
        f"SSVI stores {small:.1f}x less and needs {cheap:.1f}x less arithmetic; at this size overheads, not "
        f"arithmetic, decide the time ({dense.seconds / sparse.seconds:.1f}x)."
    )


if __name__ == "__main__":
    main()
