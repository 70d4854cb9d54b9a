"""What a network costs: weights, bytes and arithmetic, each beside what dense VI would need for the same network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssvi import flops
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.flops import LayerCost
from ssvi.inference.mixture import Mixture
from ssvi.methods.catalogue import METHODS
from ssvi.nn.layers import TWINS, BayesLayer
from ssvi.nn.random_tensor import is_random
from ssvi.nn.sparse import SparsePosterior


def cost(run: FinishedRun, samples: int) -> dict[str, Any]:
    """Weights, bytes, FLOPs and seconds of a run."""
    epochs = run.folder.metrics()
    x = torch.zeros(1, run.about["channels"], run.about["size"], run.about["size"])
    one = run.net.members[-1] if isinstance(run.net, Mixture) else run.net
    layers = flops.per_layer(one, x)
    steps = run.recipe.epochs * (epochs[-1]["step"] // len(epochs)) if epochs else 0  # of one network
    return weights(run.net) | {
        "unit": METHODS[run.recipe.method].unit,
        "disk_bytes": run.model_bytes,
        "memory_bytes": _bytes(run.net),
        "memory_bytes_dense_vi": _dense_vi_bytes(one),
        "training_flops": sum(line["flops"] for line in epochs),
        "training_flops_dense_vi": 2 * run.recipe.batch_size * steps * _dense_vi_step(layers),
        "inference_flops": flops.inference(run.net, x, samples if is_random(run.net) else 1),
        "inference_flops_dense_vi": 2 * samples * sum(layer.dense_macs for layer in layers),
        "training_seconds": sum(line["seconds"] for line in epochs),
        "peak_memory_bytes": max((line["peak_memory_bytes"] for line in epochs), default=0),
    }


def weights(net: nn.Module) -> dict[str, Any]:
    """Weights of Linear and Conv layers: all, live, the sparsity of the layers that are sparse, and that of all.

    Of one network: a mixture has the mean of its networks.
    """
    made = _posteriors(net)
    plain = sum(weight.numel() for weight in _plain_weights(net))
    sparse = [p for p in made if p.s < p.d]
    d, s = plain + sum(p.d for p in made), plain + sum(p.s for p in made)
    networks = len(net.members) if isinstance(net, Mixture) else 1
    return {
        "networks": networks,
        "weights": d // networks,
        "live_weights": s / networks,
        "sparsity": 1 - sum(p.s for p in sparse) / sum(p.d for p in sparse) if sparse else 0.0,
        "sparsity_of_all": 1 - s / d,
    }


def _dense_vi_step(layers: list[LayerCost]) -> int:
    """MACs of one example in a training step of dense VI (see `ssvi.flops`), with the same layers Bayesian; or all."""
    every = not any(layer.bayesian for layer in layers)
    return sum((6 if layer.bayesian or every else 3) * layer.dense_macs for layer in layers)


def _bytes(net: nn.Module) -> int:
    """Parameters and buffers, indices included; what is tied counts once."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(net))


def _dense_vi_bytes(net: nn.Module) -> int:
    """The same network with mu and rho for every weight, and no index."""
    made = _posteriors(net)
    now = sum(t.numel() * t.element_size() for p in made for t in (*p.per_weight(), p.index))
    dense = sum(2 * p.d * p.mu.element_size() for p in made)
    plain = sum(weight.numel() * weight.element_size() for weight in _plain_weights(net))
    return _bytes(net) - now + dense + (0 if made else plain)  # a deterministic network has one number per weight yet


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*net.parameters(), *net.buffers()]


def _posteriors(net: nn.Module) -> list[SparsePosterior]:
    return list(dict.fromkeys(m.posterior for m in net.modules() if isinstance(m, BayesLayer)))


def _plain_weights(net: nn.Module) -> list[Tensor]:
    """The weights of the layers that stayed deterministic, or of all layers of a deterministic network."""
    found = [module.weight for module in net.modules() if type(module) in TWINS]
    return list({id(w): w for w in found if isinstance(w, Tensor)}.values())
