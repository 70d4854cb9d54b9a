"""Can the runs of a grid be trained? Asked before the first of them begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssvi.comparison.grid import PlannedRun
from ssvi.errors import UserError
from ssvi.training.run_folder import RunError
from ssvi.training.start import check


def check_runs(runs: Sequence[PlannedRun], data_dir: Path | None) -> None:
    """Let one batch pass by each method and density on each data set; an error names the first run that cannot be trained.

    Runs that have begun have passed, and the seed makes no difference.
    """
    waiting = {(run.recipe.data, run.recipe.method, run.density): run for run in reversed(runs) if not run.begun}
    for run in waiting.values():
        try:
            check(run.recipe, data_dir)
        except UserError as error:
            raise RunError(f"{run.name} cannot be trained: {error}") from error
