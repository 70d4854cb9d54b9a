"""What noise in one layer of a trained network costs, and how much of it training has, layer by layer.

    python experiments/layer_noise.py zoo/cifar10-hour --images 512 --draws 3

All other weights are at their means, normalisations use the statistics of the batch, and the images are training images.
With noise of a share rho of the weights (of their root mean square r) the loss rises by L rho^2 / 2.
docs/explanation/images.md has what it printed.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import click
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import ssvi
from ssvi.data import load
from ssvi.nn.layers import posteriors
from ssvi.nn.random_tensor import pinned_at_mean
from ssvi.nn.sparse import SparsePosterior
from ssvi.training.run_folder import RunFolder


@torch.no_grad()
def loss_of(bnn: nn.Module, x: Tensor, y: Tensor) -> float:
    """The negative log-likelihood at the mean."""
    with pinned_at_mean(bnn):
        return F.cross_entropy(bnn(x), y).item()


@torch.no_grad()
def rise(bnn: nn.Module, posterior: SparsePosterior, share: float, draws: int, x: Tensor, y: Tensor) -> float:
    """By how much noise in this layer raises the loss, on average over draws and their opposites: the slope cancels."""
    mu = posterior.mu
    kept, size = mu.clone(), mu.square().mean().sqrt()
    before, losses = loss_of(bnn, x, y), []
    for seed in range(draws):
        noise = torch.randn(mu.shape, generator=torch.Generator().manual_seed(seed))
        for sign in (1, -1):
            mu.copy_(kept + sign * share * size * noise)
            losses.append(loss_of(bnn, x, y))
    mu.copy_(kept)
    return fmean(losses) - before


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--images", default=512, show_default=True, help="training images")
@click.option("--share", default=0.2, show_default=True, help="noise, as a share of a layer's weights")
@click.option("--draws", default=3, show_default=True, help="of the noise")
def main(run: Path, images: int, share: float, draws: int) -> None:
    """A line for each layer of the network in the run folder RUN."""
    bnn, data = ssvi.load(run / "model.safetensors").train(), load(RunFolder(run).recipe.data)
    x, y = data.normalise(data.train.x[:images]), data.train.y[:images]
    click.echo("| layer | s | r | sigma / r | L |\n| --- | --- | --- | --- | --- |")
    for name, posterior in posteriors(bnn).items():
        size = posterior.mu.detach().square().mean().sqrt().item()
        noise = posterior.sigma.mean().item() / size if hasattr(posterior, "sigma") else 0.0
        found = 2 * rise(bnn, posterior, share, draws, x, y) / share**2
        click.echo(f"| {name} | {posterior.mu.numel():,} | {size:.4f} | {noise:.3f} | {found:.2f} |")


if __name__ == "__main__":
    main()
