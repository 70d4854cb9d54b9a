"""Questions to a finished run: quality, cost, other data, corrupted data, layers, single images.

Each question is a function of a `FinishedRun` (or its network) that returns a record of `ssvi.evaluation.results`. The
record is what `--json` prints, what the run folder stores, and what the report draws.
"""

from ssvi.evaluation.corruption import evaluate_corruption
from ssvi.evaluation.cost_file import read_costs
from ssvi.evaluation.decisions import answer
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.layers import agreement, layer_rows
from ssvi.evaluation.ood import evaluate_ood
from ssvi.evaluation.promises import DecisionSettings
from ssvi.evaluation.quality import evaluate_run
from ssvi.evaluation.recorded_iou import recorded_iou
from ssvi.evaluation.table_quality import evaluate_table
from ssvi.evaluation.table_run import TableRun
from ssvi.evaluation.thresholds import threshold

__all__ = [
    "DecisionSettings",
    "FinishedRun",
    "TableRun",
    "agreement",
    "answer",
    "evaluate_corruption",
    "evaluate_ood",
    "evaluate_run",
    "evaluate_table",
    "layer_rows",
    "read_costs",
    "recorded_iou",
    "threshold",
]
