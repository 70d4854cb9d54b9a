"""What opposite pairs of thetas are worth: the NLL of averages over pairs, and over as many independent draws.

    python experiments/opposite_draws.py RUN --samples 2,4,10 --repeats 10

Each average is made --repeats times, and the table has the means. Validation images of the run, BatchNorm with its running
statistics. docs/prediction.md has what it printed.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import click
import torch
from torch import Tensor, nn

import ssvi
from ssvi import metrics
from ssvi.cli.options import data_dir_option, values_of
from ssvi.cli.progress import bar
from ssvi.evaluation import FinishedRun
from ssvi.nn.theta_statistics import remove


@torch.no_grad()
def averaged(net: nn.Module, batches: list[Tensor], samples: int, of_call: int, seed: int) -> Tensor:
    """p(y | x) over `samples` thetas, `of_call` in each call of `predict`: 2 are a pair, 1 is independent of all others."""
    calls = [torch.Generator().manual_seed(1000 * seed + call) for call in range(samples // of_call)]
    states = [call.get_state() for call in calls]
    rows = []
    for x in batches:
        for call, state in zip(calls, states, strict=True):  # the same thetas for every batch
            call.set_state(state)
        rows.append(torch.stack([ssvi.predict(net, x, of_call, generator=call) for call in calls]).mean(0))
    return torch.cat(rows)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--samples", default="2,4,10", show_default=True, metavar="A,B,...", help="thetas of an average, even")
@click.option("--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="averages of each kind")
@click.option("--images", type=click.IntRange(min=1), default=1000, show_default=True, help="validation images")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="CPU threads")
@data_dir_option
def main(folder: Path, samples: str, repeats: int, images: int, threads: int, data_dir: Path | None) -> None:
    """A line for each number of samples of the network in the run folder FOLDER."""
    torch.set_num_threads(threads)
    counts = values_of("--samples", samples, int, "even numbers such as 2,4,10")
    if any(count < 2 or count % 2 for count in counts):
        raise click.UsageError(f"--samples {samples}: every number must be even and positive")
    run = FinishedRun(folder, data_dir)
    remove(run.net)
    batches, targets = zip(*run.batches(run.validation), strict=True)
    keep = list(torch.cat(batches)[:images].split(500))
    y = torch.cat(targets)[:images]
    click.echo("| thetas | independent | opposite pairs |\n| --- | --- | --- |")
    for count in counts:
        nlls = [
            fmean(metrics.nll(averaged(run.net, keep, count, of_call, seed), y) for seed in bar(range(repeats), kind))
            for of_call, kind in ((1, f"{count} independent"), (2, f"{count} in pairs"))
        ]
        click.echo(f"| {count} | {nlls[0]:.4f} | {nlls[1]:.4f} |")


if __name__ == "__main__":
    main()
