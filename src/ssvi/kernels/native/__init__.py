"""The native CPU kernels: one walk over the live weights for mean, variance, noise and square root.

Equal to `ssvi.kernels.dense` up to rounding, with the noise of its own generator (Philox, keyed by torch's), and one
difference: a NaN or infinity in x reaches the outputs that have a live weight on it, where the dense product
(0 * NaN = NaN) spreads it to every output of its receptive field.
"""

from ssvi.kernels.native.library import available, isa, why_not
from ssvi.kernels.native.maps import draw, fixed, supports

__all__ = ["available", "draw", "fixed", "isa", "supports", "why_not"]
