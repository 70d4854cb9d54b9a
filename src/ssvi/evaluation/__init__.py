"""What can be asked of a finished run: quality, cost, strange data, corrupted data, structure, single images.

Each question is a function from an `FinishedRun` to a dictionary of plain numbers, which is what `--json` prints, what the
run folder keeps, and what the report draws.
"""

from ssvi.evaluation.corruption import evaluate_corruption
from ssvi.evaluation.decisions import answer, threshold
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.layers import agreement, layer_rows
from ssvi.evaluation.ood import evaluate_ood
from ssvi.evaluation.quality import evaluate_run

__all__ = [
    "FinishedRun",
    "agreement",
    "answer",
    "evaluate_run",
    "layer_rows",
    "evaluate_ood",
    "threshold",
    "evaluate_corruption",
]
