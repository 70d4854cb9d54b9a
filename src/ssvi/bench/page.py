"""docs/performance.md, from the numbers of a run and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.bench.measure import SHORTEST_TURN
from ssvi.bench.results import Benchmark, Conditions, MemoryRow, RatioRow, ScalingRow, UpdateRow
from ssvi.bench.step_sections import profile_section, small_section


def page(benchmark: Benchmark) -> str:
    """The page with a section for every table that was measured."""
    sections = {
        "What was aimed at, and what is reached": _goals(benchmark),
        "The training step at one theta, updates of gamma included (every=100)": _one_theta(benchmark.one_theta),
        "The training step by local reparameterisation, updates of gamma included (every=100)": _ratios(benchmark.step),
        "Prediction": _ratios(benchmark.prediction),
        "Linear layers, forward and backward": _ratios(benchmark.linear),
        "One layer, forward and backward": _ratios(benchmark.layers),
        "The update of gamma": _update(benchmark.update),
        "Peak memory of training": _memory(benchmark.memory),
        "Where the time of a step goes": profile_section(benchmark.profile),
        "Small batches, narrow layers, busy machines": small_section(benchmark.small),
        "How cost grows": _scaling(benchmark.scaling),
    }
    return _head(benchmark.conditions) + "".join(f"\n## {title}\n{text}" for title, text in sections.items() if text)


def _head(on: Conditions) -> str:
    machine = on.machine
    return f"""# Performance

Written by `make bench` on {on.date}: {machine.processor}, {machine.cores} cores, {on.threads} threads, kernels built for {on.isa},
torch {machine.torch}, Python {machine.python}. Batch {on.batch}; the sides take turns, each number is the median of {on.turns}, and work that takes
less than {SHORTEST_TURN:g} s is repeated within its turn; both sides run in one process with the same threads and allocator (`tune_malloc`). A ratio is how many times faster the sparse side is; "of
limit" is the share of density x dense that is reached. Where a ratio is below 1 we are slower than dense.
`ssvi bench --only one_theta` measures one table alone, `--profile` and `--small` those two.
"""  # noqa: E501


def _sparsity(density: float) -> str:
    return f"{1 - density:.0%}".replace("%", " %")


def _densities(rows: Sequence[RatioRow]) -> list[float]:
    """Those of any row, the highest first."""
    return sorted({density for row in rows for density in row.by_density}, reverse=True)


def _goals(benchmark: Benchmark) -> str:
    """The rows with a target, each ratio beside it."""
    rows = [row for row in benchmark.ratios if any(side.target for side in row.by_density.values())]
    if not rows:
        return ""
    densities = _densities(rows)
    text = "\nReached / aimed at. [What limits the rest](kernels.md#what-limits-the-sparse-convolutions).\n\n"
    text += f"| what | against | {' | '.join(map(_sparsity, densities))} |\n"
    text += "|---" * (2 + len(densities)) + "|\n"
    for row in rows:
        text += f"| {row.what} | {row.dense} | {' | '.join(_goal(row, density) for density in densities)} |\n"
    for memory in benchmark.memory:
        if memory.target is not None:
            share = memory.MB / _deterministic(benchmark.memory)
            text += f"\nPeak memory, {memory.what}: {share:.2f} of deterministic training's"
            text += f"; at most {memory.target} was aimed at.\n"
    return text


def _goal(row: RatioRow, density: float) -> str:
    side = row.by_density.get(density)
    if side is None or side.target is None:
        return "-"
    return f"**{side.ratio:.1f}x** / {side.target:g}x"


def _one_theta(rows: Sequence[RatioRow]) -> str:
    if not rows:
        return ""
    return f"""{_ratios(rows)}
One theta: point posteriors with SGD (RigL, SET, static), and IVON. Dense IVON is a plain network in torch's own layers whose
weights are theta, with our fused update over all of its weights: the strongest that we know. The same library at density 1
is slower. All are float32 but the row of bfloat16: there our side is under autocast, the dense side where that is faster.
A CPU with instructions for bfloat16 then multiplies dense matrices in it; ours multiply in float32.
"""


def _ratios(rows: Sequence[RatioRow]) -> str:
    if not rows:
        return ""
    densities = _densities(rows)
    limits = " / ".join(f"{1 - d:.0%}".removesuffix("%") for d in densities)
    text = f"\n| what | against | ms | {' | '.join(map(_sparsity, densities))} | of limit ({limits} %) |\n"
    text += "|---" * (4 + len(densities)) + "|\n"
    for row in rows:
        sides = [row.by_density.get(density) for density in densities]
        cells = " | ".join("-" if side is None else f"**{side.ratio:.1f}x** ({side.ms:.1f} ms)" for side in sides)
        of_limit = " / ".join("-" if side is None else f"{side.of_limit:.0%}" for side in sides)
        text += f"| {row.what} | {row.dense} | {row.dense_ms:.1f} | {cells} | {of_limit} |\n"
    return text


def _update(rows: Sequence[UpdateRow]) -> str:
    return "".join(
        f"\n{row.what}: the step takes {row.extra_ms:.0f} ms longer, {row.share_of_training:.2%} of training with "
        "every=100.\n"
        for row in rows
    )


def _deterministic(rows: Sequence[MemoryRow]) -> float:
    return next(row.MB for row in rows if row.what == "deterministic")


def _memory(rows: Sequence[MemoryRow]) -> str:
    if not rows:
        return ""
    text = (
        "\nTwo steps of ResNet-18 in a process of its own, above what its imports take; the allocator as it comes.\n"
        "By `ssvi bench --only memory`; [what is kept](kernels.md#what-a-step-keeps-in-memory).\n\n"
        "| network | MB | of dense VI | of deterministic |\n|---|---|---|---|\n"
    )
    for row in rows:
        text += f"| {row.what} | {row.MB:.0f} | {row.MB / rows[0].MB:.2f} | {row.MB / _deterministic(rows):.2f} |\n"
    return text


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
