"""`ssvi bench`: speed and memory as ratios against the real alternative, measured in one run."""

from ssvi.bench.measure import Measurement, interleaved
from ssvi.bench.tables import markdown, run

__all__ = ["Measurement", "interleaved", "markdown", "run"]
