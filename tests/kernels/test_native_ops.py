"""The native operators against the dense reference in float64, for every instruction set this CPU can run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ssvi.kernels import dense, native
from ssvi.kernels.geometry import Convolution, Geometry
from ssvi.kernels.native import library, ops
from ssvi.kernels.native.by_tensor import ByTensor
from ssvi.kernels.native.ops import sparse_fixed_norm

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@dataclass(frozen=True)
class Case:
    batch: int = 5
    size: tuple[int, int] = (8, 8)
    channels: tuple[int, int] = (3, 5)
    kernel: tuple[int, ...] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    density: float = 0.3
    threads: int = 1

    @property
    def geometry(self) -> Geometry:
        inputs, outputs = self.channels
        if not self.kernel:
            return Geometry((outputs, inputs))
        shape = (outputs, inputs // self.groups, *self.kernel)
        return Geometry(shape, self.stride, self.padding, self.dilation, self.groups)

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.batch, self.channels[0], *(self.size if self.kernel else (1, 1)))

    def __str__(self) -> str:
        changed = {k: v for k, v in vars(self).items() if v != getattr(Case(), k)}
        return ",".join(f"{k}={v}" for k, v in changed.items()).replace(" ", "") or "default"


LINEAR = Case(kernel=(), channels=(17, 21), density=0.2)

CASES = [
    *(Case(batch=n) for n in range(1, 34)),
    *(replace(LINEAR, batch=n) for n in range(1, 34)),
    *(Case(size=(w, w), threads=2) for w in (1, 2, 3, 4, 5, 7, 12, 14, 16, 17, 28, 32)),
    *(Case(batch=1, size=(n, m)) for n, m in ((28, 28), (1, 40), (40, 1), (3, 64))),
    *(Case(kernel=(k, k), padding=(k // 2, k // 2), size=(9, 16)) for k in (1, 2, 3, 5, 7)),
    *(Case(stride=(s, s), size=(11, 16), threads=2) for s in (1, 2, 3)),
    *(Case(kernel=(1, 1), padding=(0, 0), stride=(s, s), size=(8, 8)) for s in (1, 2, 3)),
    Case(stride=(2, 3), size=(5, 2)),  # narrower than the stride: a phase without columns
    Case(stride=(1, 2), padding=(0, 2), dilation=(2, 1), size=(10, 13)),
    Case(kernel=(2, 3), stride=(3, 1), padding=(3, 0), dilation=(1, 2), size=(7, 9), groups=3, channels=(6, 9)),
    Case(kernel=(1, 1), padding=(2, 2), size=(4, 4)),  # outputs that see nothing but padding
    Case(batch=130, channels=(7, 13), size=(4, 4), threads=2),
    Case(batch=17, channels=(1, 1), density=0.1),  # one live weight
    Case(channels=(33, 40), density=0.002, size=(16, 16), threads=2),  # empty rows and columns
    Case(batch=2, channels=(48, 48), size=(70, 70), density=0.05, threads=2),  # planes beyond the cache: bands of rows
    Case(batch=2, channels=(40, 40), size=(96, 64), stride=(2, 2), density=0.05),
    replace(LINEAR, batch=300, channels=(70, 90), density=0.05, threads=2),
    replace(LINEAR, batch=200, channels=(1600, 24), density=0.02, threads=2),  # wider than the cache
]


@pytest.fixture(params=[path.stem.removeprefix("kernels_") for path in library.candidates()])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test with each library in turn."""
    compiled = library.open_library(library.DIRECTORY / f"kernels_{request.param}.so")
    monkeypatch.setattr(library, "_load", lambda: (compiled, request.param))
    monkeypatch.setattr("ssvi.kernels.native.passes._by_shape", ByTensor())  # offsets depend on the length of a vector
    return request.param


@dataclass
class Layer:
    """The tensors of a case."""

    x: Tensor
    mu: Tensor
    sigma2: Tensor
    index: Tensor
    bias: Tensor
    grad_y: Tensor
    geometry: Geometry

    @staticmethod
    def of(case: Case) -> Layer:
        generator = torch.Generator().manual_seed(3)
        geometry = case.geometry
        s = max(1, round(case.density * geometry.d))
        index = torch.randperm(geometry.d, generator=generator)[:s].sort().values.int()
        x = torch.randn(case.x_shape, generator=generator)
        mu, sigma2 = torch.randn(s, generator=generator), torch.rand(s, generator=generator) + 0.01
        bias = torch.randn(geometry.shape[0], generator=generator)
        grad_y = torch.randn(Convolution.of(geometry).out_shape(x.shape), generator=generator)
        return Layer(x, mu, sigma2, index, bias, grad_y, geometry)

    def moments(self) -> tuple[Tensor, Tensor]:
        x = self.x.double().flatten(1) if self.geometry.ndim == 0 else self.x.double()
        moments = dense.moments(
            x, self.mu.double(), self.sigma2.double(), self.index, self.geometry, self.bias.double()
        )
        return tuple(m.view(self.grad_y.shape) for m in moments)  # type: ignore[return-value]

    def pull_back(self, weight: Tensor, grad_y: Tensor) -> Tensor:
        """sum_k weight_k grad_y_k, for every input: the gradient of a dense product to x."""
        x = torch.zeros_like(self.x, dtype=torch.float64).requires_grad_()
        x_in = x.flatten(1) if self.geometry.ndim == 0 else x
        y = dense.fixed(x_in, weight.double(), self.index, self.geometry)
        (grad,) = torch.autograd.grad(y, x, grad_y.view_as(y))
        return grad

    def gather(self, x: Tensor, grad_y: Tensor) -> Tensor:
        """sum_n grad_y_n x_n at every live weight."""
        if self.geometry.ndim == 0:
            x, grad_y = x.flatten(1), grad_y.flatten(1)
        return self.geometry.weight_gradient(x, grad_y).flatten()[self.index.long()]


def reference_noise(shape: tuple[int, ...], seed: int) -> Tensor:
    """Philox4x32-7 and Box-Muller in float64: counter = (row / 4 over all channels, column, image, 0)."""
    height = shape[2]
    per_channel = 1 if height == 1 else -(-height // 4) * 4
    n, c, r, w = np.meshgrid(*(np.arange(k, dtype=np.uint64) for k in shape), indexing="ij")
    row = c * np.uint64(per_channel) + r
    state = [row // np.uint64(4), w, n, np.zeros_like(row)]
    low32, keys = np.uint64(0xFFFFFFFF), [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(7):
        products = state[0] * np.uint64(0xD2511F53), state[2] * np.uint64(0xCD9E8D57)
        state = [
            (products[1] >> np.uint64(32)) ^ state[1] ^ np.uint64(keys[0]),
            products[1] & low32,
            (products[0] >> np.uint64(32)) ^ state[3] ^ np.uint64(keys[1]),
            products[0] & low32,
        ]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    words = np.stack(state)
    first = np.where(row % 4 < 2, words[0], words[2])
    angle = np.where(row % 4 < 2, words[1], words[3]).astype(np.int64)
    u = (first >> np.uint64(1)).astype(np.float64) * 2.0**-31 + 2.0**-32
    turns = np.where(angle >= 2**31, angle - 2**32, angle) * 2.0**-32
    wave = np.where(row % 2 == 0, np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns))
    return torch.from_numpy(np.sqrt(-2 * np.log(u)) * wave)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_draw_equals_dense(case: Case, isa: str, threads) -> None:
    threads(case.threads)
    layer, seed = Layer.of(case), 0x123456789ABCDEF
    conv = Convolution.of(layer.geometry)
    args = (layer.x, layer.mu, layer.sigma2, layer.index)
    y, t = ops.sparse_draw(*args, layer.bias, torch.tensor([seed]), conv)
    grads = ops.sparse_draw_backward(layer.grad_y, layer.x, t, *args[1:], conv, True)

    mean, var = layer.moments()
    eps = reference_noise(tuple(y.shape), seed)
    std = var.clamp_min(dense.VARIANCE_FLOOR).sqrt()
    silent = var < dense.VARIANCE_FLOOR
    t_exact = torch.where(silent, 0, eps / (2 * std))
    torch.testing.assert_close(y.double(), mean + std * eps, rtol=1e-5, atol=2e-5)
    torch.testing.assert_close(t.double(), t_exact, rtol=2**-7.5, atol=1e-5)

    # t and h = g t are rounded to 8 bits each; the bounds below are what that allows, term by term
    g, x = layer.grad_y.double(), layer.x.double()
    h, rounding = g * t.double(), 1.01 * 2**-8
    dx = layer.pull_back(layer.mu, g) + 2 * x * layer.pull_back(layer.sigma2, h)
    dx_bound = rounding * 2 * x.abs() * layer.pull_back(layer.sigma2, h.abs())
    assert_within(grads[0], dx, dx_bound)
    assert_within(grads[1], layer.gather(x, g), torch.zeros(()))
    assert_within(grads[2], layer.gather(x * x, h), rounding * layer.gather(x * x, h.abs()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fixed_equals_dense(case: Case, isa: str, threads) -> None:
    threads(case.threads)
    layer = Layer.of(case)
    conv = Convolution.of(layer.geometry)
    y = ops.sparse_fixed(layer.x, layer.mu, layer.index, layer.bias, conv)
    dx, dtheta = ops.sparse_fixed_backward(layer.grad_y, layer.x, layer.mu, layer.index, conv, True)
    empty, same = ops.sparse_fixed_backward(layer.grad_y, layer.x, layer.mu, layer.index, conv, False)
    assert_within(y, layer.moments()[0], torch.zeros(()))
    assert_within(dx, layer.pull_back(layer.mu, layer.grad_y.double()), torch.zeros(()))
    assert_within(dtheta, layer.gather(layer.x.double(), layer.grad_y.double()), torch.zeros(()))
    assert empty.numel() == 0
    assert_within(same, dtheta.double(), torch.zeros(()))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fixed_with_a_norm_behind_it_equals_dense(case: Case, isa: str, threads) -> None:
    threads(case.threads)
    layer = Layer.of(case)
    out, residual = layer.geometry.shape[0], torch.randn_like(layer.grad_y)
    weight, shift, mean, var = torch.randn(out), torch.randn(out), torch.randn(out), torch.rand(out) + 0.1
    y64 = F.batch_norm(layer.moments()[0], mean.double(), var.double(), weight.double(), shift.double(), eps=1e-3)
    args = (layer.x, layer.mu, layer.index, layer.bias, Convolution.of(layer.geometry))
    y = sparse_fixed_norm(*args, residual, weight, shift, mean, var, 1e-3, True)
    assert_within(y, F.relu(y64 + residual), torch.zeros(()))
    y = sparse_fixed_norm(*args, None, weight, shift, mean, var, 1e-3, False)
    assert_within(y, y64, torch.zeros(()))


def assert_within(actual: Tensor, exact: Tensor, bound: Tensor) -> None:
    """|actual - exact| <= bound + float32 rounding."""
    rounding = 1e-5 * exact.abs().max() + 1e-6
    excess = (actual.double() - exact).abs() - bound
    assert excess.max() <= rounding, f"off by {excess.max():.3g} beyond the bound, {rounding:.3g} allowed"
