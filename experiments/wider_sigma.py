"""What if a trained network had another sigma? Its quality on validation images, with sigma larger after training.

    python experiments/wider_sigma.py zoo/cifar10-hour --factors 1,2,3 --shares 0.1,0.2,0.3

A factor multiplies every sigma: the posterior at another temperature, without another training. A share gives all weights of
a layer the sigma share * r, r being the root mean square of its mu. BatchNorm's statistics are those of each theta, from
augmented training images, as a run ends. Test images are not looked at. docs/explanation/images.md has what it printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import click
import torch
from torch import Tensor

import ssvi
from ssvi.cli.options import data_dir_option, values_of
from ssvi.cli.progress import bar
from ssvi.evaluation import FinishedRun
from ssvi.nn.layers import gaussians
from ssvi.nn.posterior import SparseGaussian
from ssvi.training.recipe import AUGMENTATIONS

BATCHES, SIZE = 8, 128

Change = Callable[[SparseGaussian], Tensor]
"""The sigma that a posterior gets."""


def scaled(factor: float) -> Change:
    """Every sigma times the factor."""
    return lambda posterior: factor * posterior.sigma


def share_of_weights(share: float) -> Change:
    """One sigma for the layer: this share of the root mean square of its mu."""
    return lambda posterior: torch.full_like(posterior.mu, share * posterior.mu.square().mean().sqrt().item())


@torch.no_grad()
def quality(run: FinishedRun, change: Change, samples: int, what: str) -> ssvi.Evaluation:
    """On the validation images, of the network with this sigma."""
    bnn = ssvi.load(run.folder.path / "model.safetensors")
    for posterior in gaussians(bnn).values():
        posterior.rho.copy_(posterior.rho_of(change(posterior)))
    ssvi.fit_batchnorm(bnn, training_batches(run), samples)
    return ssvi.evaluate(bnn, bar(run.batches(run.validation), what), samples)


def training_batches(run: FinishedRun) -> list[Tensor]:
    """Some training images, augmented as in the training."""
    images = run.data.split_validation(run.recipe.validation, run.recipe.seed)[0].x[: BATCHES * SIZE]
    augment = AUGMENTATIONS[run.recipe.augment]
    if augment is not None:
        images = augment(images, torch.Generator().manual_seed(0))
    return [*run.normalise(images).split(SIZE)]


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--factors", default="1,2,3", show_default=True, metavar="A,B,...", help="of every sigma")
@click.option("--shares", default="0.1,0.2,0.3", show_default=True, metavar="A,B,...", help="sigma / r of every layer")
@click.option("--samples", type=click.IntRange(min=1), default=8, show_default=True, help="samples of theta")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="CPU threads")
@data_dir_option
def main(folder: Path, factors: str, shares: str, samples: int, threads: int, data_dir: Path | None) -> None:
    """A line for each sigma of the network in the run folder FOLDER."""
    torch.set_num_threads(threads)
    run = FinishedRun(folder, data_dir)
    if not gaussians(run.net):
        raise click.UsageError(
            f"{folder} has no sigma: give a run whose weights are Gaussian, by --method ssvi for example"
        )
    numbers = "numbers such as 1,2,3"
    factor_values, share_values = (
        values_of("--factors", factors, float, numbers),
        values_of("--shares", shares, float, numbers),
    )
    if not all(0 < value < math.inf for value in (*factor_values, *share_values)):
        raise click.UsageError(f"--factors {factors} and --shares {shares}: every sigma must be positive and finite")
    changes = {f"sigma x {factor:g}": scaled(factor) for factor in factor_values}
    changes |= {f"sigma = {share:g} r": share_of_weights(share) for share in share_values}
    click.echo("| sigma | accuracy | NLL | ECE |\n| --- | --- | --- | --- |")
    for name, change in changes.items():
        found = quality(run, change, samples, name)
        click.echo(f"| {name} | {found.accuracy:.1%} | {found.nll:.4f} | {found.ece:.4f} |")


if __name__ == "__main__":
    main()
