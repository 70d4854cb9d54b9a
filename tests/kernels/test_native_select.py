"""The native selection against a stable sort."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ssvi.kernels import native
from ssvi.kernels.native.select import can_top_k, top_k

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def by_sorting(score: Tensor, k: int) -> Tensor:
    return score.sort(descending=True, stable=True).indices[:k].sort().values


@pytest.mark.parametrize("d", [1, 2, 17, 1000, 70000])
@pytest.mark.parametrize("levels", [1, 3, 0], ids=["all equal", "many ties", "no ties"])
def test_equals_a_stable_sort(d: int, levels: int) -> None:
    torch.manual_seed(d)
    score = torch.randn(d) if levels == 0 else torch.randint(-1, levels, (d,)).float()
    score[::5] = -torch.inf
    for k in sorted({0, 1, d // 7, d // 2, d}):
        assert torch.equal(top_k(score, k), by_sorting(score, k))


def test_order_of_special_values() -> None:
    score = torch.tensor([-0.0, 1e-45, 0.0, -1e-45, torch.inf, -1.0, 3e38, -torch.inf, -0.0])
    for k in range(len(score) + 1):
        assert torch.equal(top_k(score, k), by_sorting(score, k))


def test_wrong_k_is_an_error() -> None:
    with pytest.raises(ValueError, match="k=4 of 3 scores"):
        top_k(torch.rand(3), 4)


def test_only_float32() -> None:
    assert can_top_k(torch.rand(3))
    assert not can_top_k(torch.rand(3).double())
