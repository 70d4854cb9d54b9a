"""Two sections of docs/performance.md: where the time of a step goes, and small or busy cases."""

from __future__ import annotations

from collections.abc import Sequence

from ssvi.bench.results import MARKED, ProfileRow, SmallRow


def profile_section(rows: Sequence[ProfileRow]) -> str:
    """One column for every case, one line for every part."""
    if not rows:
        return ""
    text = f"""
By `ssvi bench --profile`. Native kernels are timed where Python calls them, torch's operators by its profiler, the optimiser
(draw of theta included) and 1/100 of an update of gamma as a whole; the rest is Python and autograd. Packing, the copy of
x or dl/dy that the inner loops read, is timed inside the kernels of the sparse layers, and holds what is fused into it: the
BatchNorm and ReLU of the layer before, or the gradient of a BatchNorm behind. Profiling makes the steps longer, mostly the
rest.

| part | {" | ".join(row.what for row in rows)} |
{"|---" * (1 + len(rows))}|
"""
    for part in dict.fromkeys(part for row in rows for part in row.parts):
        text += f"| {part} | {' | '.join(_share(row, part) for row in rows)} |\n"
    text += f"| the step | {' | '.join(f'{row.ms:.1f} ms' for row in rows)} |\n"
    return text + f"| longer by profiling | {' | '.join(f'{row.overhead:.0%}' for row in rows)} |\n"


def _share(row: ProfileRow, part: str) -> str:
    ms = row.parts.get(part, 0.0)
    return f"{ms / row.ms:.1%} ({ms:.1f} ms)"


def small_section(rows: Sequence[SmallRow]) -> str:
    """A line for every case, and how many of them are slower than torch's own layers."""
    if not rows:
        return ""
    slower = sum(row.slower for row in rows)
    text = f"""
By `ssvi bench --small`: forward and backward at one theta and 95 %, against torch's own layer in its faster memory format,
and against our dense kernel (theta scattered into a dense weight). "A core taken": another process computes on it.
{slower} of {len(rows)} cases take over 10 % longer than torch's own layer (marked).{_beside_one_thread(rows)}

| what | batch | threads | kernel | torch's own ms | scatter ms | ours ms | ratio |
{"|---" * 8}|
"""
    for row in rows:
        ratio = f"{row.plain_ms / row.ours_ms:.2f}x" + (" **slower**" if row.slower else "")
        ms = f"{row.plain_ms:.2f} | {row.scatter_ms:.2f} | {row.ours_ms:.2f}"
        text += f"| {row.what} | {row.batch} | {row.threads} | {row.kernel} | {ms} | {ratio} |\n"
    return text


def _beside_one_thread(rows: Sequence[SmallRow]) -> str:
    """How many cases with several threads take longer than the same case of ours with one."""
    alone = {(row.what, row.batch): row.ours_ms for row in rows if row.threads == "1 thread"}
    several = [row for row in rows if row.threads != "1 thread" and (row.what, row.batch) in alone]
    if not several:
        return ""
    slower = sum(row.ours_ms > MARKED * alone[row.what, row.batch] for row in several)
    count = f"{slower} of {len(several)} cases"
    return f"\n{count} with more threads or a core taken take over 10 % longer than ours with one thread alone."
