"""What a structure of the support costs: the same recipe, density and seeds with and without it.

    python experiments/structure.py train --out runs/structure            # digits; finished runs are not trained again
    python experiments/structure.py table --out runs/structure

Every run is a run folder of `ssvi train`, and its numbers are those of its result.json: test images, used once.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from statistics import fmean, stdev

import click

from command_group import Commands
from ssvi.cli.options import values_of
from ssvi.training import recipe_files
from ssvi.training.run import finish
from ssvi.training.start import start

CASES = "none@0.0625,block:4@0.0625,block:8@0.0625,block:16@0.0625,1:16@0.0625,none@0.5,block:16@0.5,2:4@0.5"
NUMBERS = ("accuracy", "nll", "ece")


@click.group(cls=Commands)
def main() -> None:
    """Train with several structures, and print what they reached."""


@main.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder for the runs")
@click.option("--recipe", default="digits", show_default=True)
@click.option("--method", default="ssvi", show_default=True)
@click.option("--cases", default=CASES, show_default=True, metavar="STRUCTURE@DENSITY,...")
@click.option("--seeds", default="0,1,2", show_default=True, metavar="A,B,...")
@click.option("--data-dir", type=click.Path(path_type=Path), help="folder that has the data")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="another setting of the recipe")
def train(
    out: Path, recipe: str, method: str, cases: str, seeds: str, data_dir: Path | None, changes: tuple[str, ...]
) -> None:
    """Train every case with every seed."""
    given = {name: ast.literal_eval(value) for name, value in (change.split("=", 1) for change in changes)}
    for seed in values_of("--seeds", seeds, int, "whole numbers such as 0,1,2"):
        for case in cases.split(","):
            structure, density = case.split("@")
            folder = out / f"{case.replace(':', '-')}-seed{seed}"
            if (folder / "result.json").is_file():
                continue
            settings = given | {"structure": structure, "density": float(density), "seed": seed}
            run = start(recipe_files.load(recipe, method).replace(**settings), folder, data_dir=data_dir)
            run.train()
            finish(run)
            click.echo(f"{folder.name}: {json.loads((folder / 'result.json').read_text())['nll']:.4f}")


@main.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="folder of the runs")
def table(out: Path) -> None:
    """Mean and standard deviation over the seeds, as a Markdown table."""
    results: dict[str, list[dict[str, float]]] = {}
    for file in sorted(out.glob("*-seed*/result.json")):
        results.setdefault(file.parent.name.rpartition("-seed")[0], []).append(json.loads(file.read_text()))
    print("| structure @ density | seeds |", " | ".join(NUMBERS), "|")
    print("|---|--:|" + "--:|" * len(NUMBERS))
    for case, rows in results.items():
        cells = [_spread([row[name] for row in rows], percent=name != "nll") for name in NUMBERS]
        print(f"| {case} | {len(rows)} |", " | ".join(cells), "|")


def _spread(values: list[float], percent: bool) -> str:
    values = [100 * value if percent else value for value in values]
    text = "{:.1f}" if percent else "{:.4f}"
    deviation = f" ± {text.format(stdev(values))}" if len(values) > 1 else ""
    return text.format(fmean(values)) + deviation + (" %" if percent else "")


if __name__ == "__main__":
    main()
