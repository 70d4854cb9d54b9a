"""Measure methods, each in two processes that torchrun starts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ssvi.methods.groups import Updates
from ssvi.training import recipe_files
from ssvi.training.machine import this_machine
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunError
from traffic.messages import Measurement, MethodTraffic, Traffic

WORKER = Path(__file__).with_name("worker.py")
NOTHING = Traffic(0, 0)


def measure(
    base: str, methods: Sequence[str], changes: dict[str, object], steps: int, data_dir: Path | None
) -> Measurement:
    """What each method sends. The size of images and batches plays no part in it, so they are small."""
    recipes = [recipe_files.load(base, method=method).replace(**changes) for method in methods]
    found = [_of_method(recipe, steps, data_dir) for recipe in recipes]
    model, width = recipes[0].model, recipes[0].width
    return Measurement(time.strftime("%Y-%m-%d"), base, model, width, steps, this_machine(), found)


def _of_method(recipe: Recipe, steps: int, data_dir: Path | None) -> MethodTraffic:
    settings = recipe.settings
    if not isinstance(settings, Updates):
        return MethodTraffic(recipe.method, _run(recipe, steps, data_dir).over(steps), NOTHING, 0.0)
    without = _run(recipe.replace(until=0.0), steps, data_dir)
    updating = _run(
        recipe.replace(until=1.0, every=steps + 1), steps, data_dir
    )  # one step comes before the measured ones
    return MethodTraffic(recipe.method, without.over(steps), updating.minus(without), 1 / settings.every)


def _run(recipe: Recipe, steps: int, data_dir: Path | None) -> Traffic:
    """So many steps of two processes."""
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(WORKER)]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "recipe.toml"
        file.write_text(recipe.to_toml())
        where = [str(data_dir)] if data_dir else []
        command = [sys.executable, *launch, str(file), str(steps), *where]
        done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RunError(f"method={recipe.method!r} was not measured:\n{done.stderr}")
    return Traffic(**json.loads(lines[0]))
