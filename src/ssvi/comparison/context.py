"""What made the numbers of a comparison: command, date, machine and settings; and the whole comparison as JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssvi.comparison.results import RunResult, run_to_json
from ssvi.comparison.rows import rows
from ssvi.evaluation import wording
from ssvi.training.recipe import Recipe
from ssvi.training.records import from_plain, to_plain
from ssvi.training.run_folder import machine


@dataclass(frozen=True)
class Machine:
    """The versions and the hardware."""

    ssvi: str
    torch: str
    python: str
    system: str
    processor: str
    cores: int | None
    """None where the operating system does not say."""
    threads: int


@dataclass(frozen=True)
class Context:
    """What made the numbers of a comparison."""

    command: str
    date: str
    machine: Machine
    data: str
    model: str
    epochs: dict[str, int]
    """Of each method."""
    samples: int
    """Samples of theta that were asked for."""
    jobs: int
    """Runs at a time."""
    recipe: str
    seeds: list[int]

    @classmethod
    def now(
        cls, command: str, recipe: str, recipes: Sequence[Recipe], seeds: Sequence[int], samples: int, jobs: int
    ) -> Context:
        """The context of a comparison that this process makes now; `recipes` are those of its methods."""
        return cls(
            command=command,
            date=time.strftime("%Y-%m-%d"),
            machine=_this_machine(),
            data=wording.data_name(recipes[0].data),
            model=recipes[0].model,
            epochs={of_method.method: of_method.epochs for of_method in recipes},
            samples=samples,
            jobs=jobs,
            recipe=recipe,
            seeds=list(seeds),
        )


def _this_machine() -> Machine:
    return from_plain(Machine, machine())


def comparison_to_json(context: Context, runs: Sequence[RunResult]) -> dict[str, Any]:
    """The context, every number of every run, and the rows over the seeds, unrounded."""
    return to_plain(context) | {
        "runs": [run_to_json(run) for run in runs],
        "rows": [to_plain(row.summary()) for row in rows(runs)],
    }
