"""What a network costs: weights, bytes and arithmetic, each beside what dense VI would need for the same network."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import nn

from ssvi import flops
from ssvi.evaluation import memory
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.layers import deterministic_weights, distinct_posteriors
from ssvi.evaluation.results import Cost
from ssvi.flops import LayerCost
from ssvi.inference.predict import networks, samples_of_each
from ssvi.methods import about
from ssvi.nn.random_tensor import is_random
from ssvi.training.recipe import Recipe
from ssvi.training.run import THETAS


@dataclass(frozen=True)
class Weights:
    """The weights of the Linear and Conv layers of one network; of a mixture, the mean over its networks."""

    networks: int
    weights: int
    live_weights: float
    sparsity: float
    """Of the layers that are sparse."""
    sparsity_of_all: float


def cost(run: FinishedRun, samples: int) -> Cost:
    """Weights, bytes, FLOPs and seconds of a run."""
    epochs = run.folder.metrics()
    device = next(run.net.parameters()).device
    x = torch.zeros(1, *run.input_shape, device=device)
    network = networks(run.net)[-1]
    layers = flops.per_layer(network, x)
    steps = run.recipe.epochs * (epochs[-1].step // len(epochs)) if epochs else 0  # of one network
    return Cost(
        **asdict(weights(run.net)),
        unit=about(run.recipe.method).unit,
        disk_bytes=run.model_bytes,
        memory_bytes=memory.network_bytes(run.net),
        memory_bytes_dense_vi=memory.dense_vi_bytes(network, _thetas(run.recipe)),
        training_flops=sum(line.flops for line in epochs),
        training_flops_dense_vi=2 * run.recipe.batch_size * steps * _dense_vi_step(layers),
        inference_flops=flops.inference(run.net, x, samples_of_each(run.net, samples) if is_random(run.net) else 1),
        inference_flops_dense_vi=2 * samples * sum(layer.dense_macs for layer in layers),
        training_seconds=sum(line.seconds for line in epochs),
        peak_memory_bytes=max((line.peak_memory_bytes for line in epochs), default=0),
    )


def _thetas(recipe: Recipe) -> int:
    """For how many thetas a run of dense VI has statistics of BatchNorm."""
    return max(recipe.samples, THETAS) if recipe.batchnorm_batches else 0


def weights(net: nn.Module) -> Weights:
    """Count the weights of Linear and Conv layers: all, the live ones, and the sparsity."""
    posteriors = distinct_posteriors(net)
    deterministic = sum(weight.numel() for weight in deterministic_weights(net))
    sparse = [p for p in posteriors if p.s < p.d]
    d, s = deterministic + sum(p.d for p in posteriors), deterministic + sum(p.s for p in posteriors)
    count = len(networks(net))
    return Weights(
        networks=count,
        weights=d // count,
        live_weights=s / count,
        sparsity=1 - sum(p.s for p in sparse) / sum(p.d for p in sparse) if sparse else 0.0,
        sparsity_of_all=1 - s / d,
    )


def _dense_vi_step(layers: list[LayerCost]) -> int:
    """MACs of one example in a training step of dense VI (see `ssvi.flops`).

    The layers that are Bayesian in this network are Bayesian in dense VI; of a deterministic network, all are.
    """
    all_layers = not any(layer.bayesian for layer in layers)
    return sum((6 if layer.bayesian or all_layers else 3) * layer.dense_macs for layer in layers)
