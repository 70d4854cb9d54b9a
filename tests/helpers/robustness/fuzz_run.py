"""One case after the other: made, run, judged."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from robustness.forked import Outcome, command
from robustness.fuzz_cases import Case, case, flags
from robustness.fuzz_settings import small
from robustness.fuzz_verdict import wrong

ORIGINALS = {"ssvi": {}, "ensemble": {"members": 2}, "vd": {}, "mbnn": {"members": 1}}
"""The methods whose runs are damaged: a posterior, a mixture, gates, a chain of states."""


@dataclass(frozen=True)
class Finding:
    """A case, how it ended, and what is wrong with that; empty if nothing is."""

    number: int
    case: Case
    outcome: Outcome
    wrong: str

    def __str__(self) -> str:
        words = shlex.join(["ssvi", *self.case.words])
        return f"case {self.number} ({self.case.kind}): {self.wrong}\n  {words}\n  {self.outcome.err[-600:]}"


def prepare(folder: Path) -> list[Path]:
    """Small finished runs, of which damaged copies are made."""
    folder.mkdir(parents=True)
    Image.new("L", (8, 8), 100).save(folder / "digit.png")
    runs = []
    for method, own in ORIGINALS.items():
        settings = small(method) | {"epochs": 2} | own
        _must("train", "digits", *flags(settings), "--out", method, folder=folder)
        evaluation = _must("evaluate", method, "--json", folder=folder)
        (folder / f"{method}.evaluation").write_text(evaluation.out)
        runs.append(folder / method)
    return runs


def run_case(seed: int, number: int, folder: Path, originals: list[Path]) -> Finding:
    """Make the case of this number in the folder, run it, and judge how it ended."""
    made = case(seed, number, folder, originals)
    outcome = command(made.words, folder)
    return Finding(number, made, outcome, wrong(made, outcome, folder))


def _must(*words: str, folder: Path) -> Outcome:
    outcome = command(words, folder)
    assert outcome.code == 0, outcome.err
    return outcome
