"""The cost columns of Tables 1 and 2, counted again by one counter on the paper's own network. Nothing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from ssvi import flops
from ssvi.nn.convert import to_bnn
from ssvi.nn.models import resnet18
from ssvi.plotting import Cell, Table, short
from ssvi.reproduction import paper
from ssvi.reproduction.results import SetupResults
from ssvi.reproduction.scales import Scale
from ssvi.reproduction.shown import Shown, TitledTable
from ssvi.reproduction.verdicts import NOT_REPEATED, REPEATED, Verdict

IMAGES, EPOCHS, BATCH, EVERY, UNTIL = 50_000, 200, 128, 100, 0.75
"""The paper's training on CIFAR, and the authors' interval of updates, which end after this share of the steps."""

EQUAL = 0.05
"""Two counts agree if they differ by less than this share."""

DENSE_VI, VD = 1.1e17, 67.1e15
"""Two printed figures for the same arithmetic: two products per layer, at density 1."""


@dataclass(frozen=True)
class Count:
    """A row: what is trained, the printed FLOPs, and ours."""

    what: str
    printed: float | None
    ours: float
    why: str = ""


def training_flops(net: nn.Module, *, updated: bool = True, one_theta: bool = False) -> float:
    """FLOPs to train a network on CIFAR-10 for 200 epochs; with `one_theta` one product per layer is enough."""
    steps = EPOCHS * IMAGES // BATCH
    updates = int(UNTIL * steps) // EVERY if updated else 0
    x = torch.zeros(1, 3, 32, 32)
    return flops.training(net, x, steps=steps, batch_size=BATCH, updates=updates, one_theta=one_theta)


def counts() -> list[Count]:
    """Every method whose arithmetic is known before it is trained."""
    dense, tenth, twentieth = (to_bnn(resnet18(), density, keep_dense=("conv1",)) for density in (1.0, 0.1, 0.05))
    two_products, one_product = (training_flops(dense, updated=False, one_theta=single) for single in (False, True))
    sparse_one = training_flops(twentieth, one_theta=True)
    return [
        Count("dense VI", DENSE_VI, two_products, "two products per layer, each forward and twice backward: 6 f"),
        Count("VD", VD, two_products, "the same arithmetic as dense VI: 6 f"),
        Count("SBP", 67.1e15, one_product, "noise multiplies activations, so one product per layer is enough: 3 f"),
        Count("SSVI, LRT, density 0.1", 11.4e15, training_flops(tenth), "printed: density x 1.14e17"),
        Count("SSVI, LRT, density 0.05", 5.7e15, training_flops(twentieth), "printed: density x 1.14e17"),
        Count("SSVI, density 0.05", None, sparse_one, "one theta per batch: 3 f, and dense gradients of updates"),
        Count("RigL, density 0.05", None, sparse_one, "the same arithmetic"),
    ]


def flops_item(results: Sequence[SetupResults], scale: Scale) -> Shown:
    """The printed figures beside our counts."""
    found = counts()
    head = ["", "printed", "counted", "printed / counted", "why"]
    rows = [
        [
            Cell(count.what),
            Cell(f"{count.printed:.2e}" if count.printed else "-"),
            Cell(f"{count.ours:.2e}"),
            Cell(f"{count.printed / count.ours:.2f}" if count.printed else "-"),
            Cell(count.why),
        ]
        for count in found
    ]
    title = f"ResNet-18 of width 64 on CIFAR-10, {EPOCHS} epochs; 2 FLOPs per multiply-accumulate"
    note = (
        "f is one forward pass, 555 M multiply-accumulates. What AEB and mBNN cost depends on the run: AEB's printed "
        f"383.4e15 are {383.4e15 / found[2].ours * EPOCHS:,.0f} epochs of a dense network, mBNN's 22.8e15 a mean of "
        f"{22.8e15 / found[2].ours:.0%} of its channels, without its proposals. The tables have what our runs took."
    )
    return Shown(tuple(verdicts(found)), (TitledTable(title, Table(head, rows, words=(0, 4))),), notes=(note,))


def verdicts(found: Sequence[Count]) -> list[Verdict]:
    """The ratios, the figure for dense VI, and whether the column agrees with itself."""
    by_name = {count.what: count.ours for count in found}
    dense = by_name["dense VI"]
    return [
        *(_ratio(density, by_name[f"SSVI, LRT, density {density:g}"] / dense) for density in (0.1, 0.05)),
        _equal("dense VI takes 1.1e17 FLOPs", DENSE_VI, dense, "counted"),
        _equal("the column agrees with itself: dense VI takes what VD takes", DENSE_VI, VD, "printed for VD"),
    ]


def _ratio(density: float, ratio: float) -> Verdict:
    """Repeated if the ratio rounds to the printed one, in its two decimals."""
    [printed] = {row.of_dense for row in paper.TABLE_1 if row.density == density}
    same = f"{ratio:.2f}" == f"{printed:.2f}"
    claim = f"at density {density:g} SSVI takes {printed:.2f} of the training FLOPs of dense VI"
    return Verdict(claim, REPEATED if same else NOT_REPEATED, f"counted: {ratio:.4f}")


def _equal(claim: str, printed: float, other: float, what: str) -> Verdict:
    off = printed / other - 1
    words = f"{short(printed)} printed, {short(other)} {what}: {printed / other:.2f} times"
    return Verdict(claim, REPEATED if abs(off) < EQUAL else NOT_REPEATED, words)
