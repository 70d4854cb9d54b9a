"""A BatchNorm folded into the layer before it: values, threads and errors."""

from __future__ import annotations

import pytest
import torch
from native_layers import CONV, images, norm_behind, parameters

from ssvi.kernels import native
from ssvi.kernels.geometry import Convolution
from ssvi.kernels.native import ops
from ssvi.kernels.native.ops import sparse_fixed_norm

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


def test_opcheck_of_a_norm_behind_a_layer() -> None:
    mu, _, index = parameters(CONV)
    args = (images().detach(), mu.detach(), index, torch.randn(6), Convolution.of(CONV))
    torch.library.opcheck(sparse_fixed_norm.op, (*args, torch.randn(5, 6, 9, 8), *norm_behind(6), 1e-5, True))
    torch.library.opcheck(sparse_fixed_norm.op, (*args, None, None, None, *norm_behind(6)[2:], 1e-5, False))


def test_a_norm_behind_a_layer_hides_no_bad_value_and_depends_on_no_thread(threads) -> None:
    mu, _, index = parameters(CONV)
    x, residual, norm = torch.randn(3, 4, 9, 8), torch.randn(3, 6, 9, 8), norm_behind(6)
    x[1, 2, 4, 3] = residual[0, 5, 0, 0] = float("nan")
    args = (mu.detach(), index, None, Convolution.of(CONV))
    plain = ops.sparse_fixed(x, *args)
    outputs = []
    for n in (1, 2, 3):
        threads(n)
        outputs.append(sparse_fixed_norm(x, *args, residual, *norm, 1e-5, True))
    assert torch.equal(outputs[0].isnan(), plain.isnan() | residual.isnan())
    assert all(torch.equal(outputs[0].nan_to_num(), y.nan_to_num()) for y in outputs[1:])


def test_a_norm_that_does_not_fit_is_named_and_a_residual_is_broadcast() -> None:
    mu, _, index = parameters(CONV)
    args, norm = (images().detach(), mu.detach(), index, None, Convolution.of(CONV)), norm_behind(6)
    with pytest.raises(ValueError, match="var: 6 float32 values are needed"):
        sparse_fixed_norm(*args, None, *norm[:3], torch.ones(5), 1e-5, True)
    with pytest.raises(ValueError, match="mean: 6 float32 values are needed"):
        sparse_fixed_norm(*args, None, *norm[:2], norm[2].double(), norm[3], 1e-5, True)
    with pytest.raises(RuntimeError, match="expand"):
        sparse_fixed_norm(*args, torch.randn(5, 6, 9, 7), *norm, 1e-5, True)
    wide, row = (sparse_fixed_norm(*args, r, *norm, 1e-5, True) for r in (torch.ones(5, 6, 9, 8), torch.ones(8)))
    assert torch.equal(wide, row)
