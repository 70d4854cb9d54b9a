"""docs/performance.md, from the numbers of a run and from nothing else."""

from __future__ import annotations

from typing import Any

DENSITIES = ("0.1", "0.05", "0.01")

HEAD = """# Performance

Written by `make bench` on {date}: {processor}, {cores} cores, {threads} threads, kernels built for {isa},
torch {torch}, Python {python}. Batch {batch}; the sides take turns, each number is the median of {turns}; both sides run in
one process with the same threads and allocator (`tune_malloc`). A ratio is how many times faster the sparse side is; "of
limit" is the share of density x dense that is reached. Where a ratio is below 1 we are slower than dense.
"""


def page(found: dict[str, Any]) -> str:
    """All sections that were measured."""
    machine = found["machine"]
    facts = {k: machine[k] for k in ("processor", "cores", "torch", "python")}
    text = HEAD.format(**facts, **{k: found[k] for k in ("date", "threads", "isa", "batch", "turns")})
    for part, title, section in SECTIONS:
        if part in found:
            text += f"\n## {title}\n{section(found[part])}"
    return text


def _ratios(rows: list[dict[str, Any]]) -> str:
    text = "\n| what | against | ms | 90 % | 95 % | 99 % | of limit (90 / 95 / 99 %) |\n|---|---|---|---|---|---|---|\n"
    for row in rows:
        cells = [f"**{row[d]['ratio']:.1f}x** ({row[d]['ms']:.1f} ms)" for d in DENSITIES]
        limits = " / ".join(f"{row[d]['of_limit']:.0%}" for d in DENSITIES)
        text += f"| {row['what']} | {row['dense']} | {row['dense_ms']:.1f} | {' | '.join(cells)} | {limits} |\n"
    return text


def _memory(rows: list[dict[str, Any]]) -> str:
    text = (
        "\nTwo steps of ResNet-18 in a process of its own, above what its imports take; the allocator as it comes.\n\n"
    )
    text += "| network | MB | of dense VI |\n|---|---|---|\n"
    return text + "".join(f"| {row['what']} | {row['MB']:.0f} | {row['MB'] / rows[0]['MB']:.2f} |\n" for row in rows)


def _update(rows: list[dict[str, Any]]) -> str:
    return "".join(
        f"\n{row['what']}: the step takes {row['extra_ms']:.0f} ms longer, {row['share_of_training']:.2%} of training with "
        "every=100.\n"
        for row in rows
    )


def _scaling(rows: list[dict[str, Any]]) -> str:
    text = "\nOne 3x3 layer on 16 x 16, forward and backward, by the native kernel or the dense one as the rule chooses.\n\n"
    text += "| batch | channels | density | dense VI ms | ours ms | ratio |\n|---|---|---|---|---|---|\n"
    for row in rows:
        ms = f"{row['dense_ms']:.2f} | {row['sparse_ms']:.2f}"
        text += f"| {row['batch']} | {row['channels']} | {row['density']} | {ms} | {row['ratio']:.1f}x |\n"
    return text


SECTIONS = [
    ("layers", "One layer, forward and backward", _ratios),
    ("linear", "Linear layers, forward and backward", _ratios),
    ("step", "The whole training step, updates of gamma included (every=100)", _ratios),
    ("prediction", "Prediction", _ratios),
    ("update", "The update of gamma", _update),
    ("memory", "Peak memory of training", _memory),
    ("scaling", "How cost grows", _scaling),
]
