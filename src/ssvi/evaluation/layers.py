"""`ssvi inspect`: what training made of each layer, and whether the removal criteria would agree on it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ssvi import criteria, kernels
from ssvi.inference.mixture import Mixture
from ssvi.nn.layers import TWINS, BayesLayer, layers
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior

CRITERIA = ("abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs", "snr_exp_abs")
TEXTBOOK = "snr_abs_textbook"


@torch.no_grad()
def layer_rows(net: nn.Module) -> list[dict[str, Any]]:
    """A row for every Linear and Conv layer, in the order of the network; a tied posterior comes once.

    Of a mixture the last network is shown.
    """
    net = net.members[-1] if isinstance(net, Mixture) else net
    seen: set[SparsePosterior] = set()
    rows = []
    for name, module in net.named_modules():
        if isinstance(module, BayesLayer):
            if module.posterior not in seen:
                rows.append({"layer": name, "kind": type(module).__name__} | _posterior_row(module))
            seen.add(module.posterior)
        elif type(module) in TWINS and isinstance(module.weight, Tensor):
            rows.append({"layer": name, "kind": type(module).__name__} | _plain_row(module.weight))
    return rows


def _posterior_row(layer: BayesLayer) -> dict[str, Any]:
    posterior = layer.posterior
    spread = isinstance(posterior, SparseGaussian)
    return {
        "d": posterior.d,
        "s": posterior.s,
        "density": posterior.density,
        "sigma_start": posterior.sigma_init.item() if isinstance(posterior, SparseGaussian) else None,
        "sigma": posterior.sigma.median().item() if spread else None,
        "dead_units": dead_units(posterior),
        "snr": (posterior.mu.abs() / posterior.sigma).median().item() if spread else None,
        "kernel": kernels.chosen(posterior.mu, layer.geometry, posterior.s),
    }


def _plain_row(weight: Tensor) -> dict[str, Any]:
    rows, d = weight.flatten(1), weight.numel()
    dead = (rows == 0).all(1).double().mean().item()
    known = {"d": d, "s": d, "density": 1.0, "dead_units": dead, "kernel": "deterministic"}
    return known | {"sigma_start": None, "sigma": None, "snr": None}


def dead_units(posterior: SparsePosterior) -> float:
    """The share of output units without a live weight: they pass their bias only."""
    units = posterior.shape[0]
    fed = torch.unique(posterior.index.long() // (posterior.d // units)).numel()
    return 1 - fed / units


@torch.no_grad()
def agreement(net: nn.Module, rate: float) -> dict[str, Any]:
    """Do two criteria remove the same weights? Intersection over union of what each would remove from this posterior.

    As in an update, every layer loses its round(rate s) lowest-scored weights. `iou` is the matrix over the six
    criteria, computed stably; `textbook` is its row for criterion 4 as printed, in float32. `snr_vs` follows criteria 2
    and 4, which are one in exact arithmetic, down to the small rates of late training. None for a deterministic network.
    """
    made = [p for p in dict.fromkeys(m.posterior for _, m in layers(net)) if isinstance(p, SparseGaussian)]
    if not made:
        return {}
    names = (*CRITERIA, TEXTBOOK)
    removed = _removed(made, names, rate)
    rates = [rate, rate / 10, rate / 100]
    return {
        "rate": rate,
        "criteria": list(CRITERIA),
        "iou": [[_iou(removed[a], removed[b]) for b in CRITERIA] for a in CRITERIA],
        "textbook": [_iou(removed[TEXTBOOK], removed[b]) for b in CRITERIA],
        "snr_vs": [{"rate": r} | _against_snr(made, r) for r in rates],
    }


def _against_snr(made: list[SparseGaussian], rate: float) -> dict[str, float]:
    removed = _removed(made, ("snr", "snr_abs", TEXTBOOK), rate)
    return {name: _iou(removed["snr"], removed[name]) for name in ("snr_abs", TEXTBOOK)}


def _removed(made: list[SparseGaussian], names: tuple[str, ...], rate: float) -> dict[str, Tensor]:
    """For each criterion a mask over the live weights of all layers; equal scores go to the lower position."""
    return {name: torch.cat([_lowest(posterior, name, rate) for posterior in made]) for name in names}


def _lowest(posterior: SparseGaussian, name: str, rate: float) -> Tensor:
    score = criteria.BY_NAME[name](posterior.mu.float(), posterior.sigma.float())
    mask = torch.zeros(posterior.s, dtype=torch.bool)
    mask[score.argsort(stable=True)[: round(rate * posterior.s)]] = True
    return mask


def _iou(a: Tensor, b: Tensor) -> float:
    union = (a | b).sum().item()
    return (a & b).sum().item() / union if union else 1.0
