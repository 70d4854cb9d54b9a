"""The parts of the methods that SSVI is compared with, for your own training loop (docs/methods.md shows how)."""

from ssvi.inference import mask_sampler, samplers, spike_and_slab
from ssvi.methods import group_vd, sbp, snr_prune, vd
from ssvi.nn import batchnorm, gates, reach

__all__ = [
    "batchnorm",
    "gates",
    "group_vd",
    "mask_sampler",
    "reach",
    "samplers",
    "sbp",
    "snr_prune",
    "spike_and_slab",
    "vd",
]
