"""`ssvi compare`: a grid of methods, densities and seeds, trained where runs are missing, told in the paper's tables."""

from ssvi.comparison.engine import Outcome, train_missing
from ssvi.comparison.grid import Planned, plan, refuse_changes
from ssvi.comparison.rows import Row, measure, rows
from ssvi.comparison.tables import section, tables, write_section
from ssvi.comparison.tuning import best, judge, plan_trials

__all__ = [
    "Outcome",
    "Planned",
    "Row",
    "best",
    "judge",
    "measure",
    "plan",
    "plan_trials",
    "refuse_changes",
    "rows",
    "section",
    "tables",
    "train_missing",
    "write_section",
]
