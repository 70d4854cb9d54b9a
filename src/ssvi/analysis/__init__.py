"""What can be asked of a finished run: quality, cost, strange data, corrupted data, structure, single images.

Each question is a function from an `OpenRun` to a dictionary of plain numbers, which is what `--json` prints, what the
run folder keeps, and what the report draws.
"""

from ssvi.analysis.answers import answer, threshold
from ssvi.analysis.opened import OpenRun
from ssvi.analysis.outside import separate
from ssvi.analysis.quality import assess
from ssvi.analysis.shift import under_corruption
from ssvi.analysis.structure import agreement, layer_rows

__all__ = ["OpenRun", "agreement", "answer", "assess", "layer_rows", "separate", "threshold", "under_corruption"]
