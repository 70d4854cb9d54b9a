"""Do two removal criteria choose the same weights? Intersection over union (IoU) of what each would remove in an update.

    IoU(a, b) = sum over layers |A and B| / sum over layers |A or B|

A and B are the k weights of a layer that an update would remove by criterion a and by criterion b, under the same structure
and the same grace periods. Nothing of the size of d is formed, and no random number is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ssvi import criteria
from ssvi.inference.removal import LayerRemoval, Removal
from ssvi.nn.sharded import whole
from ssvi.nn.sparse import SparsePosterior


@dataclass(frozen=True)
class CriteriaIoU:
    """How far the six criteria of the paper agree at one update of gamma."""

    update: int
    """t."""
    removed: int
    """k, summed over the layers."""
    criteria: list[str]
    exact: list[list[float]]
    """By the stable forms of the library."""
    textbook: list[list[float]]
    """By the formulas as printed, in float32."""


def compare_criteria(update: int, removals: Iterable[LayerRemoval]) -> CriteriaIoU:
    """The IoU of all pairs of criteria in the update of this number, just before it is carried out."""
    removals, names = list(removals), criteria.OF_PAPER
    return CriteriaIoU(
        update,
        removed=sum(removal.k for removal in removals),
        criteria=list(names),
        exact=iou(removals, [exact(name) for name in names]),
        textbook=iou(removals, [as_printed(name) for name in names]),
    )


@torch.no_grad()
def iou(removals: Iterable[LayerRemoval], scorings: Sequence[Removal]) -> list[list[float]]:
    """The matrix over the scorings; 1 where nothing is removed."""
    both = torch.zeros(len(scorings), len(scorings), dtype=torch.float64)
    for removal in removals:
        both += _intersections(torch.stack([~removal.staying(scoring) for scoring in scorings])).cpu()
    sizes = both.diagonal()
    union = sizes[:, None] + sizes - both
    matrix: list[list[float]] = torch.where(union > 0, both / union, 1.0).tolist()
    return matrix


def _intersections(leave: Tensor) -> Tensor:
    """The sizes of the intersections of sets, given as masks, (sets, s): a product over the weights that are in any set."""
    members = leave[:, leave.any(0)].double()
    return members @ members.T


def exact(name: str) -> Removal:
    """A criterion in the stable form of the library, which computes in float64 from mu and sigma in float32.

    |mu| / sigma is one rounded division, and criteria 2 and 4 share it. From a ratio in float64 the order of criterion 4
    could not be told: its score is flat near 0, where float64 resolves ratios that differ by 3e-9 of themselves and no less.
    """
    return _of_float32(criteria.BY_NAME[name])


def as_printed(name: str) -> Removal:
    """A criterion by the formula of the paper in float32; a score that is NaN counts as 0, as in the authors' code.

    So a weight whose score is lost is the first to leave. An infinite score, of a variance that is rounded to 0, stays.
    """
    return _of_float32(lambda mu, sigma: _nan_to_zero(criteria.AS_PRINTED[name](mu, sigma)))


def _of_float32(criterion: criteria.Criterion) -> Removal:
    def score(posterior: SparsePosterior) -> Tensor:
        return criterion(whole(posterior.mu).float(), whole(posterior.sigma).float())

    return score


def _nan_to_zero(score: Tensor) -> Tensor:
    return torch.where(score.isnan(), torch.zeros_like(score), score)
