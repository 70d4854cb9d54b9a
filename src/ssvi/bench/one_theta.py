"""The training step at one theta for the batch, against deterministic training and against dense IVON."""

from __future__ import annotations

from ssvi.bench.cases import Work
from ssvi.bench.measure import interleaved
from ssvi.bench.ratios import DENSITIES, Say, against_dense, charge_updates, with_updates
from ssvi.bench.results import RatioRow
from ssvi.bench.steps import training_step

AIMS = {
    64: {0.10: 4.0, 0.05: 6.0, 0.01: 10.0},
    32: {0.05: 4.5, 0.01: 6.0},
    16: {0.05: 3.2, 0.01: 4.0},
}
"""By width and density: how many times faster than deterministic training, or at width 64 than dense IVON, we want to be."""


def one_theta(turns: int, say: Say) -> list[RatioRow]:
    """Point posteriors (RigL, SET, static) at three widths and with bfloat16 activations, and IVON with its optimiser."""
    return [*(_point(width, turns, say) for width in AIMS), *_ivon(turns, say), _bfloat16(turns, say)]


def _formats(kind: str, width: int = 64) -> dict[str, Work]:
    """A dense step in both memory formats."""
    return {f"{kind}-{layout}": training_step(f"{kind}-{layout}", width=width) for layout in ("nchw", "nhwc")}


def _point(width: int, turns: int, say: Say) -> RatioRow:
    say(f"training step at one theta, ResNet-18 of width {width}")
    dense = _formats("deterministic", width)
    densities = [d for d in DENSITIES if d in AIMS[width]]
    seconds = interleaved(dense | with_updates("point", densities, width), turns)
    charge_updates(seconds)
    return against_dense(
        f"ResNet-18 step, one theta, width {width}", "deterministic", seconds, [*dense], aims=AIMS[width]
    )


def _bfloat16(turns: int, say: Say) -> RatioRow:
    """Under autocast. torch's own layers then multiply in bfloat16, which fast machines gain by and slow ones lose by."""
    say("training step at one theta, activations in bfloat16")
    dense = _formats("deterministic")
    dense |= {f"{kind}-bf16": training_step(f"{kind}-bf16") for kind in dense}
    seconds = interleaved(dense | with_updates("point-bf16"), turns)
    charge_updates(seconds)
    return against_dense("ResNet-18 step, one theta, bfloat16", "deterministic", seconds, [*dense])


def _ivon(turns: int, say: Say) -> list[RatioRow]:
    say("training step of IVON, optimiser included")
    dense, plain = _formats("denseivon"), _formats("deterministic")
    seconds = interleaved(dense | plain | with_updates("ivon"), turns)
    charge_updates(seconds)
    what = "ResNet-18 step of IVON, optimiser included"
    return [
        against_dense(what, "dense IVON", seconds, [*dense], aims=AIMS[64]),
        against_dense(what, "deterministic", seconds, [*plain]),
    ]
