"""`ssvi compare` and `ssvi tune`: a grid of methods, densities and seeds. Missing runs are trained, all are evaluated.

grid -> engine -> results -> rows -> tables -> page; tuning takes the same way with trials in place of seeds. The engine does
its tasks in a home: on this machine or on a Ray cluster.
"""

from ssvi.comparison.bars import Bars, EvaluationBar
from ssvi.comparison.check import check_runs
from ssvi.comparison.engine import Outcome, evaluate_missing, train_missing
from ssvi.comparison.grid import PlannedRun, plan, refuse_changes
from ssvi.comparison.homes import Home, LocalProcesses, Needs
from ssvi.comparison.page import Context, comparison_to_json, section, write_section
from ssvi.comparison.results import EvaluatedRun, FailedRun, Place, RunResult, evaluate_runs, run_to_json
from ssvi.comparison.rows import Row, RowSummary, rows
from ssvi.comparison.tables import Table, tables
from ssvi.comparison.tuning import Trial, Tuning, best, evaluate_trial, evaluate_trials, plan_trials, recipe_tables

__all__ = [
    "Bars",
    "Context",
    "EvaluatedRun",
    "EvaluationBar",
    "FailedRun",
    "Home",
    "LocalProcesses",
    "Needs",
    "Outcome",
    "Place",
    "PlannedRun",
    "Row",
    "RowSummary",
    "RunResult",
    "Table",
    "Trial",
    "Tuning",
    "best",
    "check_runs",
    "comparison_to_json",
    "evaluate_missing",
    "evaluate_runs",
    "evaluate_trial",
    "evaluate_trials",
    "plan",
    "plan_trials",
    "recipe_tables",
    "refuse_changes",
    "rows",
    "run_to_json",
    "section",
    "tables",
    "train_missing",
    "write_section",
]
