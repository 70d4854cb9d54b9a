"""The best of many scores, with ties that are settled in one way: the lower position wins."""

from __future__ import annotations

import torch
from torch import Tensor

from ssvi.kernels.native import select


def top_k(score: Tensor, k: int) -> Tensor:
    """The positions of the k largest scores, increasing; of equal scores the lower position wins."""
    if select.can_top_k(score):
        return select.top_k(score, k)
    if k == 0:
        return torch.empty(0, dtype=torch.long, device=score.device)
    smallest = torch.topk(score, k, sorted=True).values[-1]
    above = (score > smallest).nonzero().flatten()
    equal = (score == smallest).nonzero().flatten()[: k - above.numel()]
    return torch.cat([above, equal]).sort().values


def all_but_weakest(score: Tensor, removable: Tensor, k: int) -> Tensor:
    """Which ones stay, a mask: all but the k removable ones with the smallest score."""
    places = removable.nonzero().flatten()
    stays = ~removable
    stays[places[top_k(score[places], places.numel() - k)]] = True
    return stays


def best_of_each(score: Tensor, group: Tensor, room: Tensor) -> Tensor:
    """The places of the room[g] largest scores of each group g, increasing; `group` has the number of each score's group."""
    by_score = score.sort(descending=True, stable=True).indices
    of_group, order = group[by_score].sort(stable=True)
    rank = torch.arange(len(order), device=order.device) - torch.searchsorted(of_group, of_group)
    return by_score[order[rank < room[of_group]]].sort().values
