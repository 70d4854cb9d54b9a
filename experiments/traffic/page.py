"""The measurement and the projection as sections of a Markdown page, each with what made it."""

from __future__ import annotations

from pathlib import Path

from ssvi.comparison import Table, write_section
from ssvi.comparison.page import between_markers, markdown
from traffic.messages import Measurement
from traffic.projection import Assumptions


def write(
    page: Path, measurement: Measurement, made: Table, projected: list[Table], given: Assumptions, source: str
) -> None:
    """Put both into the page."""
    machine = measurement.machine
    measured = (
        "`python experiments/wire.py measure`, and `table` (experiments/README.md has the commands). Measured on "
        f"{measurement.date} (torch {machine.torch}): bytes of data that arrive at the TCP "
        f"sockets of each of two processes, which send as many; {measurement.model}, width {measurement.width or 'usual'}, "
        f"recipe {measurement.recipe}, mean of {measurement.steps} steps. Messages are collective operations."
    )
    _write(page, "wire", f"{measured}\n{markdown(made)}")
    assumed = (
        "A projection, not a measurement. Seconds per step = compute + 2 (p - 1) / p x bytes / bandwidth + 2 (p - 1) x "
        f"messages x latency: all-reduce by a ring of p workers, {given.latency * 1e6:g} microseconds of latency, nothing "
        "overlaps, and every worker has a batch of its own. In brackets the share of computing in the step, which is also "
        f"the share of p times the speed that is left. {source}"
    )
    _write(page, "projection", f"{assumed}\n{''.join(map(markdown, projected))}")


def _write(page: Path, name: str, text: str) -> None:
    write_section(page, name, between_markers(name, text))
