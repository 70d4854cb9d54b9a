"""Selection for the addition step: which of d scores are the k largest."""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi.kernels.native.functions import pointer
from ssvi.kernels.native.library import available, library


def can_top_k(score: Tensor) -> bool:
    """Whether `top_k` serves these scores: float32 on the CPU."""
    return available() and score.device.type == "cpu" and score.dtype == torch.float32


def top_k(score: Tensor, k: int) -> Tensor:
    """The positions of the k largest scores, increasing; of equal scores the lower position wins. Scores without NaN."""
    if not 0 <= k <= score.numel():
        raise ValueError(f"top_k: k={k} of {score.numel()} scores")
    positions = torch.empty(k, dtype=torch.int64)
    if k:
        score = score.contiguous()
        library().ssvi_top_k(pointer(score), score.numel(), k, pointer(positions))
    return positions
