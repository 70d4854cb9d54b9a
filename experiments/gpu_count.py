"""The launches and bytes of a training step on a GPU, counted on tensors without numbers: nothing is measured.

python experiments/gpu_count.py --write docs/performance.md
"""

from __future__ import annotations

from pathlib import Path

import click
import torch

from ssvi.bench.gpu_count import BATCH, Counted, count
from ssvi.cli.tables import grid, show
from ssvi.comparison import Table, write_section
from ssvi.comparison.page import between_markers, markdown

NOTE = (
    "## GPUs, counted\n\n"
    "`python experiments/gpu_count.py --write docs/performance.md` (torch {torch}). **Counted, not measured: no GPU was at "
    'hand.** The step runs on tensors without numbers\n(device "meta"), and every operator that torch dispatches counts: '
    "one launch each, none for views; its operands cross memory once; s numbers that are gathered or scattered touch s "
    "sectors\nof 32 bytes. What cuDNN does inside (workspaces, algorithms), caches and the time of a launch are not "
    "in it. ResNet-18 of width 64, batch {batch}, float32; SGD with momentum (`foreach`)\nagainst IVON at {sparsity:.0%} "
    "sparsity. It is a step in which neither gamma is updated nor training looked at (for warnings: steps 1, 2, 4, ..., 64, "
    "then every 100th).\n\n"
    "- \"kept\" is what exists between two steps: parameters, positions, BatchNorm's statistics and the optimiser's state. "
    '"peak" is the most that exists at one moment, mostly activations.\n'
    '- "Triton": each function of the update of IVON is one launch over all layers, with two small tables copied to the '
    "device. Without Triton torch's operators serve, layer by layer.\n"
    "- What one theta adds in a layer: filling and scattering W, twice, and gathering dW.\n"
)


def table(rows: list[Counted]) -> Table:
    """One row for each side."""
    head = ["side", "launches", "MB moved", "waits for the device", "MB kept", "MB of gradients", "MB peak"]
    cells = [
        [
            r.side,
            f"{r.launches:,}",
            f"{r.moved:,.0f}",
            f"{r.syncs}",
            f"{r.kept:.1f}",
            f"{r.gradients:.1f}",
            f"{r.peak:.0f}",
        ]
        for r in rows
    ]
    return Table("One training step", head, cells)


@click.command()
@click.option("--density", type=click.FloatRange(0, 1, min_open=True), default=0.05, show_default=True)
@click.option("--write", type=click.Path(path_type=Path), help="also put the table into this Markdown page")
@click.option("--json", "as_json", is_flag=True, help="print every number as JSON, unrounded")
def main(density: float, write: Path | None, as_json: bool) -> None:
    """Count the launches and bytes of a training step on a GPU: plain training against one theta."""
    rows = count(density)
    show(rows, as_json, lambda: [grid(*table(rows))])
    if write is not None:
        note = NOTE.format(torch=torch.__version__, batch=BATCH, sparsity=1 - density)
        write_section(write, "gpu-count", between_markers("gpu-count", f"{note}{markdown(table(rows))}"))


if __name__ == "__main__":
    main()
