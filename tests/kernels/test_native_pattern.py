"""The pattern of a support is kept, and built again when the support changes."""

from __future__ import annotations

import pytest
import torch
from native_layers import CONV, images, parameters

from ssvi.kernels import dense, native
from ssvi.kernels.native import passes

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def test_a_changed_index_is_noticed() -> None:
    mu, _, index = parameters(CONV)
    x, other = images(), parameters(CONV)[2]
    before = native.fixed(x, mu, index, CONV)
    index.copy_(other)
    torch.testing.assert_close(native.fixed(x, mu, index, CONV), dense.fixed(x, mu, other, CONV))
    assert not torch.equal(before, native.fixed(x, mu, index, CONV))
    with torch.inference_mode():
        torch.testing.assert_close(native.fixed(x, mu, index.clone(), CONV), dense.fixed(x, mu, other, CONV))


def test_a_dead_index_leaves_nothing_behind() -> None:
    mu, _, index = parameters(CONV)
    native.fixed(images(), mu, index, CONV)
    before = len(passes._by_shape)
    native.fixed(images(), mu, index, CONV)
    assert len(passes._by_shape) == before, "known already"
    del index
    assert len(passes._by_shape) == before - 1
