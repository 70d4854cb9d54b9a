"""What must be true after a case: a finished run with finite numbers and exact sparsity, or one clear line and a code."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustness.forked import Outcome, forked
from robustness.fuzz_cases import Case

if TYPE_CHECKING:
    from torch import nn

    from ssvi.training.recipe import Recipe

CONSTANT = ("ssvi", "ssvi-lrt", "rigl", "set", "static")
"""The methods that have as many live weights at the end as at the start."""
LONGEST = 2000
"""Characters of an error: more is no clear line."""


def wrong(case: Case, outcome: Outcome, folder: Path) -> str:
    """What is wrong with this end of the case; empty if nothing is."""
    if outcome.crashed:
        return outcome.crashed
    if outcome.code != 0:
        return _wrong_refusal(case, outcome)
    if case.trains is not None:
        run = case.trains
        checked = forked(lambda: check_run(run), folder)
        return checked.err.strip().splitlines()[-1] if checked.code else ""
    if case.original is not None:
        return _wrong_result(case, outcome, folder)
    return ""


def _wrong_refusal(case: Case, outcome: Outcome) -> str:
    errors = [line for line in outcome.err.splitlines() if line.lower().startswith("error: ")]
    if len(errors) != 1:
        return f"{len(errors)} lines that say what is wrong"
    if len(errors[0]) > LONGEST:
        return f"an error of {len(errors[0])} characters"
    if case.trains is not None and case.trains.exists() and not list(case.trains.glob("checkpoints/*")):
        return "a folder is left behind, though nothing was trained"
    return ""


def _wrong_result(case: Case, outcome: Outcome, folder: Path) -> str:
    """A command that succeeds on a damaged run must not have used what is damaged."""
    assert case.original is not None
    if case.words[0] == "train":
        same = (folder / "run" / "model.safetensors").read_bytes() == (case.original / "model.safetensors").read_bytes()
        return "" if same else "another network than without the damage"
    if case.words[0] == "evaluate":
        expected = json.loads(case.original.with_suffix(".evaluation").read_text())["metrics"]
        return "" if json.loads(outcome.out)["metrics"] == expected else "other numbers than without the damage"
    return ""


def check_run(folder: Path) -> None:
    """An assertion fails unless the run is finished, its numbers are finite, and its supports are what they should be."""
    from ssvi.evaluation import FinishedRun
    from ssvi.nn.layers import posterior_uses

    run = FinishedRun(folder)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == run.recipe.all_epochs, f"{len(lines)} lines of {run.recipe.all_epochs} epochs"
    assert_finite(lines, "metrics.jsonl")
    assert_finite(json.loads((folder / "result.json").read_text()), "result.json")
    for name, posterior in posterior_uses(run.net):
        index = posterior.index
        assert len(index) == posterior.s <= posterior.d, f"{name}: {len(index)} live weights, s is {posterior.s}"
        assert bool((index.diff() > 0).all()), f"{name}: the positions are not sorted"
        assert int(index[-1]) < posterior.d, f"{name}: a position outside of the layer"
    if run.recipe.method in CONSTANT:
        assert_sparsity_of_the_start(run.net, run.recipe, folder.with_name("fresh"))


def assert_sparsity_of_the_start(net: nn.Module, recipe: Recipe, folder: Path) -> None:
    """An assertion fails unless every layer has as many live weights as a run of the recipe begins with."""
    from ssvi.nn.layers import posterior_uses
    from ssvi.training.start import start

    fresh = start(recipe, folder).net
    began, ended = ({name: posterior.s for name, posterior in posterior_uses(each)} for each in (fresh, net))
    assert began == ended, f"the live weights were {began} and are {ended}"


def assert_finite(value: Any, where: str) -> None:
    """An assertion fails if there is a number that is not finite."""
    if isinstance(value, dict):
        for key, item in value.items():
            assert_finite(item, f"{where} {key}")
    elif isinstance(value, list):
        for item in value:
            assert_finite(item, where)
    elif isinstance(value, float):
        assert math.isfinite(value), f"{where}: {value}"
