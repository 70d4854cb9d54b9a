"""docs/performance.md, from the numbers of a run and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.bench.results import Benchmark, Conditions, MemoryRow, RatioRow, ScalingRow, UpdateRow


def page(benchmark: Benchmark) -> str:
    """The page with a section for every table that was measured."""
    sections = {
        "One layer, forward and backward": _ratios(benchmark.layers),
        "Linear layers, forward and backward": _ratios(benchmark.linear),
        "The whole training step, updates of gamma included (every=100)": _ratios(benchmark.step),
        "Prediction": _ratios(benchmark.prediction),
        "The update of gamma": _update(benchmark.update),
        "Peak memory of training": _memory(benchmark.memory),
        "How cost grows": _scaling(benchmark.scaling),
    }
    return _head(benchmark.conditions) + "".join(f"\n## {title}\n{text}" for title, text in sections.items() if text)


def _head(on: Conditions) -> str:
    machine = on.machine
    return f"""# Performance

Written by `make bench` on {on.date}: {machine.processor}, {machine.cores} cores, {on.threads} threads, kernels built for {on.isa},
torch {machine.torch}, Python {machine.python}. Batch {on.batch}; the sides take turns, each number is the median of {on.turns}; both sides run in
one process with the same threads and allocator (`tune_malloc`). A ratio is how many times faster the sparse side is; "of
limit" is the share of density x dense that is reached. Where a ratio is below 1 we are slower than dense.
"""  # noqa: E501


def _ratios(rows: Sequence[RatioRow]) -> str:
    if not rows:
        return ""
    densities = list(rows[0].by_density)
    sparsities = [f"{1 - d:.0%}".replace("%", " %") for d in densities]
    limits = " / ".join(f"{1 - d:.0%}".removesuffix("%") for d in densities)
    text = f"\n| what | against | ms | {' | '.join(sparsities)} | of limit ({limits} %) |\n"
    text += "|---" * (4 + len(densities)) + "|\n"
    for row in rows:
        cells = " | ".join(f"**{side.ratio:.1f}x** ({side.ms:.1f} ms)" for side in row.by_density.values())
        of_limit = " / ".join(f"{side.of_limit:.0%}" for side in row.by_density.values())
        text += f"| {row.what} | {row.dense} | {row.dense_ms:.1f} | {cells} | {of_limit} |\n"
    return text


def _update(rows: Sequence[UpdateRow]) -> str:
    return "".join(
        f"\n{row.what}: the step takes {row.extra_ms:.0f} ms longer, {row.share_of_training:.2%} of training with "
        "every=100.\n"
        for row in rows
    )


def _memory(rows: Sequence[MemoryRow]) -> str:
    if not rows:
        return ""
    text = (
        "\nTwo steps of ResNet-18 in a process of its own, above what its imports take; the allocator as it comes.\n\n"
        "| network | MB | of dense VI |\n|---|---|---|\n"
    )
    return text + "".join(f"| {row.what} | {row.MB:.0f} | {row.MB / rows[0].MB:.2f} |\n" for row in rows)


def _scaling(rows: Sequence[ScalingRow]) -> str:
    if not rows:
        return ""
    text = (
        "\nOne 3x3 layer on 16 x 16, forward and backward, by the native kernel or the dense one as the rule chooses.\n\n"
        "| batch | channels | density | dense VI ms | ours ms | ratio |\n|---|---|---|---|---|---|\n"
    )
    for row in rows:
        ms = f"{row.dense_ms:.2f} | {row.sparse_ms:.2f}"
        text += f"| {row.batch} | {row.channels} | {row.density} | {ms} | {row.ratio:.1f}x |\n"
    return text
