"""What a network costs: weights, bytes and arithmetic, each beside what dense VI would need for the same network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssvi import flops
from ssvi.analysis.opened import OpenRun
from ssvi.flops import LayerCost
from ssvi.nn import TWINS, BayesLayer
from ssvi.support import SparsePosterior


def cost(run: OpenRun, samples: int) -> dict[str, Any]:
    """Weights, bytes, FLOPs and seconds of a run."""
    epochs = run.folder.metrics()
    x = torch.zeros(1, run.about["channels"], run.about["size"], run.about["size"])
    layers = flops.per_layer(run.net, x)
    steps = epochs[-1]["step"] if epochs else 0
    return _weights(run.net) | {
        "disk_bytes": run.model_bytes,
        "memory_bytes": _bytes(run.net),
        "memory_bytes_dense_vi": _dense_vi_bytes(run.net),
        "training_flops": flops.training(
            run.net, x, steps=steps, batch_size=run.recipe.batch_size, updates=_updates(run, steps)
        ),
        "training_flops_dense_vi": 2 * run.recipe.batch_size * steps * _dense_vi_step(layers),
        "inference_flops": flops.inference(run.net, x, samples if _posteriors(run.net) else 1),
        "inference_flops_dense_vi": 2 * samples * sum(layer.dense for layer in layers),
        "training_seconds": sum(line["seconds"] for line in epochs),
    }


def _weights(net: nn.Module) -> dict[str, Any]:
    """Numbers of weights of Linear and Conv layers: all, live, and the sparsity of the layers that are sparse."""
    made = _posteriors(net)
    plain = sum(weight.numel() for weight in _plain_weights(net))
    sparse = [p for p in made if p.s < p.d]
    return {
        "weights": plain + sum(p.d for p in made),
        "live_weights": plain + sum(p.s for p in made),
        "sparsity": 1 - sum(p.s for p in sparse) / sum(p.d for p in sparse) if sparse else 0.0,
    }


def _updates(run: OpenRun, steps: int) -> int:
    """Batches that also gave a dense gradient: mc_steps for each update of gamma."""
    recipe = run.recipe
    return round(recipe.until * steps) // recipe.every * recipe.mc_steps if recipe.method == "ssvi" else 0


def _dense_vi_step(layers: list[LayerCost]) -> int:
    """MACs of one example in a training step of dense VI (see `ssvi.flops`), with the same layers Bayesian; or all."""
    every = not any(layer.bayesian for layer in layers)
    return sum((6 if layer.bayesian or every else 3) * layer.dense for layer in layers)


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
