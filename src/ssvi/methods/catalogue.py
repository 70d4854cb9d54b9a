"""The names of the methods, and what is to be known of each: the same bench runs them all."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """A row of the paper's tables."""

    title: str
    about: str
    unit: str
    """What is removed: "weight", "channel" or "none"."""
    targets: bool
    """Whether `density` sets its sparsity. Where it does not, sparsity is an outcome, or there is none."""
    states: bool = False
    """Whether it keeps several networks, over which evaluation averages."""
    chain: bool = False
    """Whether they are the states of one sampler."""


METHODS = {
    "ssvi": Method("SSVI", "sparse subspace variational inference", "weight", True),
    "vi": Method("dense VI", "mean-field variational inference at density 1", "none", False),
    "deterministic": Method("deterministic", "dense point estimate", "none", False),
    "ensemble": Method("ensemble", "several dense point estimates", "none", False, states=True),
    "snr-prune": Method("SNR pruning", "dense VI, pruned by |mu|/sigma at the end", "weight", True),
    "snr-finetune": Method("SNR pruning, fine-tuned", "dense VI, pruned before its last epochs", "weight", True),
    "rigl": Method("RigL", "sparse point estimate, grown by gradients", "weight", True),
    "set": Method("SET", "sparse point estimate, grown at random", "weight", True),
    "static": Method("static sparse", "sparse point estimate on a fixed random support", "weight", True),
    "vd": Method("VD", "sparse variational dropout", "weight", False),
    "group-vd": Method("group VD", "Bayesian compression: variational dropout of channels", "channel", False),
    "sbp": Method("SBP", "structured Bayesian pruning", "channel", False),
    "aeb": Method("AEB", "SGHMC with an adaptive spike-and-slab prior", "weight", True, states=True, chain=True),
    "mbnn": Method(
        "mBNN", "masked BNN: SGLD, and Metropolis-Hastings on channels", "channel", False, states=True, chain=True
    ),
}
