"""`ssvi bench`: speed and memory as ratios against the real alternative, measured in one run."""

from ssvi.bench.measure import Measurement, interleaved
from ssvi.bench.page import page
from ssvi.bench.tables import run

__all__ = ["Measurement", "interleaved", "page", "run"]
