"""What sparsity saves in time and memory, against dense variational inference and deterministic training in torch.

python benchmarks/bench.py [--threads 2] [--repeats 5] [--only layers linear step predict memory] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import networks
import torch
import torch.nn.functional as F
from measure import in_fresh_process, interleaved
from torch import Tensor

import ssvi
from ssvi.geometry import Geometry
from ssvi.kernels import native
from ssvi.kernels.native.allocator import tune_malloc

BATCH, EVERY = 128, 100
DENSITIES = (0.1, 0.05, 0.01)
LAYERS = {"3x3 64@32": (64, 32), "3x3 128@16": (128, 16), "3x3 256@8": (256, 8), "3x3 512@4": (512, 4)}
MUST = {"layers": (3.5, 6, 12), "linear": (2.5, 4, 8), "step": (2.5, 4, 6), "predict": (1.5, 3, 6)}
Row = dict[str, Any]


def row(what: str, against: str, density: float, base: float, ours: float, must: float | None = None) -> Row:
    """One line of the table; times in seconds."""
    return {
        "what": what, "against": against, "density": density, "base_ms": 1e3 * base, "ours_ms": 1e3 * ours,
        "ratio": base / ours, "of_limit": density * base / ours, "must": must,
    }  # fmt: skip


# ---- one layer ---------------------------------------------------------------------------------------------------------


def dense_layer(geometry: Geometry, x: Tensor, grad_y: Tensor) -> Callable[[], object]:
    """Forward and backward of a dense VI layer on mu and sigma^2."""
    x = x.clone().requires_grad_()
    mu, sigma2 = torch.randn(geometry.shape), torch.rand(geometry.shape)
    if x.is_contiguous(memory_format=torch.channels_last):
        mu, sigma2 = (v.to(memory_format=torch.channels_last) for v in (mu, sigma2))
    mu, sigma2 = mu.requires_grad_(), sigma2.requires_grad_()

    def run() -> None:
        std = geometry.apply(x * x, sigma2).clamp_min(networks.VARIANCE_FLOOR).sqrt()
        y = geometry.apply(x, mu) + std * torch.randn_like(std)
        torch.autograd.grad(y, (x, mu, sigma2), grad_y)

    return run


def sparse_layer(geometry: Geometry, x: Tensor, grad_y: Tensor, density: float) -> Callable[[], object]:
    """The same on a random support, by the native kernel."""
    x, s = x.clone().requires_grad_(), round(density * geometry.d)
    index = torch.randperm(geometry.d)[:s].sort().values.int()
    mu, sigma2 = torch.randn(s, requires_grad=True), torch.rand(s, requires_grad=True)

    def run() -> None:
        torch.autograd.grad(native.draw(x, mu, sigma2, index, geometry), (x, mu, sigma2), grad_y)

    return run


def compare(what: str, geometry: Geometry, x: Tensor, repeats: int, must: tuple[float, ...]) -> Iterator[Row]:
    """The layer at every density against the faster of torch's memory formats."""
    grad_y = torch.randn_like(geometry.apply(x, torch.zeros(geometry.shape)))
    sides = {"contiguous": dense_layer(geometry, x, grad_y)}
    if x.dim() == 4:
        last = (v.to(memory_format=torch.channels_last) for v in (x, grad_y))
        sides["channels_last"] = dense_layer(geometry, *last)
    dense_names = tuple(sides)
    sides.update({str(d): sparse_layer(geometry, x, grad_y, d) for d in DENSITIES})
    seconds = interleaved(sides, repeats)
    best = min(seconds[name] for name in dense_names)
    for density, least in zip(DENSITIES, must, strict=True):
        yield row(what, "dense VI", density, best, seconds[str(density)], least)


def layers(repeats: int) -> Iterator[Row]:
    """The 3x3 convolutions of the ResNet, forward and backward."""
    for what, (channels, size) in LAYERS.items():
        geometry = Geometry((channels, channels, 3, 3), (1, 1), (1, 1), (1, 1))
        yield from compare(what, geometry, torch.randn(BATCH, channels, size, size), repeats, MUST["layers"])


def linear(repeats: int) -> Iterator[Row]:
    """Fully connected layers, forward and backward."""
    for width in (1024, 4096):
        x = torch.randn(BATCH, width)
        yield from compare(f"linear {width}-{width}", Geometry((width, width)), x, repeats, MUST["linear"])


# ---- the network -------------------------------------------------------------------------------------------------------


def batch() -> tuple[Tensor, Tensor]:
    """Images and labels."""
    return torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))


def training_step(kind: str, density: float, *, every: int | None = None) -> Callable[[], object]:
    """One step of SGD with momentum on the loss of that kind; `every` adds SSVI's updates of the support."""
    net = networks.resnet(kind, density).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)
    rate = ssvi.schedules.constant(0.1)
    subspace = ssvi.Subspace(net, optimizer, every=every, rate=rate) if every else None
    elbo = ssvi.ELBO(net, train_size=50_000, beta=ssvi.schedules.constant(0.1)) if kind == "sparse" else None
    x, labels = batch()

    def step() -> None:
        loss = F.cross_entropy(net(x), labels)
        if elbo is not None:
            loss = elbo(loss)
        elif kind == "dense":
            loss = loss + 0.1 / 50_000 * networks.dense_kl(net)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if subspace is not None:
            subspace.step()

    return step


def step(repeats: int) -> Iterator[Row]:
    """A training step of ResNet-18, updates of the support included at their share of EVERY steps."""
    sides = {"dense": training_step("dense", 1.0), "deterministic": training_step("deterministic", 1.0)}
    for density in DENSITIES:
        sides[f"{density}"] = training_step("sparse", density)
        sides[f"{density} updating"] = training_step("sparse", density, every=1)
    seconds = interleaved(sides, repeats)
    least_plain = (None, 1.5, 2.5)
    for density, must, must_plain in zip(DENSITIES, MUST["step"], least_plain, strict=True):
        plain, updating = seconds[f"{density}"], seconds[f"{density} updating"]
        ours = plain + max(0.0, updating - plain) / EVERY
        yield row("ResNet-18 step", "dense VI", density, seconds["dense"], ours, must)
        yield row("ResNet-18 step", "deterministic", density, seconds["deterministic"], ours, must_plain)
        yield row("share of the updates", "the step", density, max(0.0, updating - plain) / EVERY, ours)


@torch.no_grad()
def predict(repeats: int) -> Iterator[Row]:
    """Five samples of theta for one batch."""
    x, _ = batch()
    dense = networks.resnet("dense").eval()
    sides: dict[str, Callable[[], object]] = {"dense": lambda: networks.dense_predict(dense, x, 5)}
    for density in DENSITIES:
        net = networks.resnet("sparse", density).eval()
        sides[str(density)] = lambda net=net: ssvi.predict(net, x, samples=5)  # type: ignore[misc]
    seconds = interleaved(sides, repeats)
    for density, must in zip(DENSITIES, MUST["predict"], strict=True):
        yield row("ResNet-18, 5 samples", "dense weights", density, seconds["dense"], seconds[str(density)], must)


# ---- memory ------------------------------------------------------------------------------------------------------------


def peak_of_training(kind: str, density: float) -> float:
    """Megabytes that two training steps need beyond the imported libraries; for a process of its own."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = training_step(kind, density)
    run(), run()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def memory(_repeats: int) -> Iterator[Row]:
    """Peak memory of the training step; the columns hold megabytes."""
    dense = in_fresh_process("peak_of_training", "dense", 1.0)
    for density in DENSITIES:
        ours = in_fresh_process("peak_of_training", "sparse", density)
        yield row("peak memory (MB)", "dense VI", density, dense / 1e3, ours / 1e3, 2.0 if density == 0.05 else None)


# ---- the command -------------------------------------------------------------------------------------------------------


PARTS = {"layers": layers, "linear": linear, "step": step, "predict": predict, "memory": memory}


def print_row(r: Row) -> None:
    """A line for a terminal."""
    verdict = "" if r["must"] is None else f"  must {r['must']:g}: {'yes' if r['ratio'] >= r['must'] else 'NO'}"
    print(
        f"{r['what']:22s} vs {r['against']:14s} at {1 - r['density']:.0%} sparse: {r['base_ms']:8.1f} -> "
        f"{r['ours_ms']:7.1f}  {r['ratio']:5.1f}x  ({r['of_limit']:.0%} of density x dense){verdict}",
        flush=True,
    )


def main() -> None:
    """Measures the parts that were asked for and prints them as they come."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tuned = tune_malloc()  # for both sides
    machine = f"{platform.processor() or platform.machine()}, {native.isa()}, {options.threads} threads"
    print(f"{machine}, batch {BATCH}, torch {torch.__version__}, malloc tuned: {tuned}, {date.today()}")
    rows = []
    for name in options.only:
        for r in PARTS[name](options.repeats):
            print_row(r)
            rows.append(r)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "date": str(date.today()), "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
