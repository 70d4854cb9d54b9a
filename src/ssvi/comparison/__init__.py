"""`ssvi compare` and `ssvi tune`: a grid of methods, densities and seeds. Missing runs are trained, all are evaluated.

grid -> engine -> results -> rows -> tables -> page; studies (Optuna) -> searching -> tuning. Both do their tasks in a home:
on this machine or on a Ray cluster.
"""

from ssvi.comparison.bars import Bars, EvaluationBar
from ssvi.comparison.check import check_runs
from ssvi.comparison.claims import Claims
from ssvi.comparison.engine import Outcome, evaluate_missing, train_missing
from ssvi.comparison.grid import PlannedRun, plan, refuse_changes
from ssvi.comparison.homes import Home, LocalProcesses, Needs
from ssvi.comparison.optuna_storage import TuningError, default_storage, load_optuna
from ssvi.comparison.page import Context, command_line, comparison_to_json, section, write_section
from ssvi.comparison.results import EvaluatedRun, FailedRun, Place, RunResult, evaluate_runs, run_to_json
from ssvi.comparison.rounds import Budget
from ssvi.comparison.rows import Row, RowSummary, rows
from ssvi.comparison.searching import Workplace, search
from ssvi.comparison.tables import Table, tables
from ssvi.comparison.trial_bars import TrialBars
from ssvi.comparison.trials import Trial, best, evaluate_trial
from ssvi.comparison.tuning import Tuning, gather, length, open_studies, recipe_tables
from ssvi.comparison.variations import Variation, check_variations, parse_variation

__all__ = [
    "Bars",
    "Budget",
    "Claims",
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
    "TrialBars",
    "Tuning",
    "TuningError",
    "Variation",
    "Workplace",
    "best",
    "check_runs",
    "check_variations",
    "command_line",
    "comparison_to_json",
    "default_storage",
    "evaluate_missing",
    "evaluate_runs",
    "evaluate_trial",
    "gather",
    "length",
    "load_optuna",
    "open_studies",
    "parse_variation",
    "plan",
    "recipe_tables",
    "refuse_changes",
    "rows",
    "run_to_json",
    "search",
    "section",
    "tables",
    "train_missing",
    "write_section",
]
