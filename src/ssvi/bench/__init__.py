"""`ssvi bench`: speed and memory as ratios against the real alternative, measured in one run."""

from ssvi.bench.measure import interleaved
from ssvi.bench.page import page
from ssvi.bench.results import Benchmark
from ssvi.bench.tables import TABLES, run

__all__ = ["TABLES", "Benchmark", "interleaved", "page", "run"]
