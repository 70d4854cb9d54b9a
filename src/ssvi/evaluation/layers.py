"""The layers of a trained network: the weights of each, and whether the removal criteria agree on them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssvi import criteria
from ssvi.evaluation.results import AgainstSNR, Agreement, LayerRow
from ssvi.inference.agreement import as_printed, exact, iou
from ssvi.inference.predict import networks
from ssvi.inference.removal import LayerRemoval
from ssvi.nn.bayes_layer import BayesLayer
from ssvi.nn.kinds import is_linear_map
from ssvi.nn.layers import posterior_uses, use_name
from ssvi.nn.layout import OUTPUTS_FIRST, Layout
from ssvi.nn.posterior import SparseGaussian
from ssvi.nn.sparse import SparsePosterior
from ssvi.nn.spread import SparseSpread

TEXTBOOK = "snr_abs_textbook"
"""Criterion 4 as printed."""


@torch.no_grad()
def layer_rows(net: nn.Module) -> list[LayerRow]:
    """A row for every posterior, and every deterministic Linear and Conv layer, in the order of the network. A posterior
    that layers share has one row.

    Of a mixture the last network is shown.
    """
    seen: set[SparsePosterior] = set()
    rows = []
    for name, module in networks(net)[-1].named_modules():
        if isinstance(module, BayesLayer):
            for parameter, posterior in module.posteriors.items():
                if posterior not in seen:
                    rows.append(_posterior_row(use_name(name, parameter), module, posterior))
                seen.add(posterior)
        elif (weight := deterministic_weight(module)) is not None:
            rows.append(_deterministic_row(name, type(module).__name__, weight))
    return rows


def _posterior_row(name: str, layer: BayesLayer, posterior: SparsePosterior) -> LayerRow:
    spread = posterior if isinstance(posterior, SparseSpread) else None
    return LayerRow(
        layer=name,
        kind=type(layer).__name__,
        d=posterior.d,
        s=posterior.s,
        density=posterior.density,
        sigma_start=spread.sigma_init.item() if spread else None,
        sigma=spread.sigma.median().item() if spread else None,
        dead_units=dead_units(posterior, layer.layout),
        snr=(spread.mu.abs() / spread.sigma).median().item() if spread else None,
        kernel=layer.kernel,
    )


def _deterministic_row(name: str, kind: str, weight: Tensor) -> LayerRow:
    d = weight.numel()
    dead = (weight.flatten(1) == 0).all(1).double().mean().item()
    return LayerRow(
        layer=name, kind=kind, d=d, s=d, density=1.0, sigma_start=None, sigma=None, dead_units=dead, snr=None,
        kernel="deterministic",
    )  # fmt: skip


def dead_units(posterior: SparsePosterior, layout: Layout = OUTPUTS_FIRST) -> float:
    """The share of output units without a live weight: their output is their bias, whatever the input."""
    return 1 - layout.by_output(posterior.gamma).flatten(1).any(1).double().mean().item()


def agreement(net: nn.Module, rate: float) -> Agreement | None:
    """Do two criteria remove the same weights? Intersection over union of what each would remove from this posterior.

    Every layer loses its round(rate s) weights with the lowest scores, chosen as in an update. `iou` is the matrix over the
    six criteria, computed stably; `textbook` is its row for criterion 4 as printed, in float32. `snr_vs` follows criteria 2
    and 4, which are one in exact arithmetic, down to the small rates of late training. None for a deterministic network, and
    for other families than the Gaussian, whose formulas these are.
    """
    gaussians = [p for p in distinct_posteriors(net) if isinstance(p, SparseGaussian)]
    if not gaussians:
        return None
    names = criteria.OF_PAPER
    *matrix, textbook = iou(_removals(gaussians, rate), [*map(exact, names), as_printed("snr_abs")])
    return Agreement(
        rate=rate,
        criteria=list(names),
        iou=[row[: len(names)] for row in matrix],
        textbook=textbook[: len(names)],
        snr_vs=[_against_snr(gaussians, smaller) for smaller in (rate, rate / 10, rate / 100)],
    )


def _against_snr(gaussians: list[SparseGaussian], rate: float) -> AgainstSNR:
    (_, stable, textbook), *_ = iou(_removals(gaussians, rate), [exact("snr"), exact("snr_abs"), as_printed("snr_abs")])
    return AgainstSNR(rate, snr_abs=stable, snr_abs_textbook=textbook)


def _removals(gaussians: list[SparseGaussian], rate: float) -> list[LayerRemoval]:
    """What an update at this rate would have to decide, if all weights might leave."""
    counts = [posterior.units.whole(round(rate * posterior.s)) for posterior in gaussians]
    return [
        LayerRemoval("", posterior, torch.ones_like(posterior.index, dtype=torch.bool), k)
        for posterior, k in zip(gaussians, counts, strict=True)
    ]


def distinct_posteriors(net: nn.Module) -> list[SparsePosterior]:
    """Every posterior once, also where layers share it; none in a deterministic network."""
    return list(dict.fromkeys(posterior for _, posterior in posterior_uses(net)))


def deterministic_weight(module: nn.Module) -> Tensor | None:
    """The weight of a Linear or Conv layer of torch; None for all other modules."""
    weight = module.weight if is_linear_map(module) else None
    return weight if isinstance(weight, Tensor) else None


def deterministic_weights(net: nn.Module) -> list[Tensor]:
    """The weights of the layers that stayed deterministic, each once, also where layers share it."""
    weights = [weight for module in net.modules() if (weight := deterministic_weight(module)) is not None]
    return list({id(weight): weight for weight in weights}.values())
