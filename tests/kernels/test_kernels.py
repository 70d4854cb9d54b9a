"""The seam between layers and kernels: who serves, how to choose, and what happens without a compiler."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi import kernels
from ssvi.cli.installation import findings
from ssvi.kernels import native
from ssvi.nn.models import lenet

needs_native = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@needs_native
def test_auto_takes_the_native_kernel_where_it_is_faster_and_can_serve():
    conv, dense = ssvi.to_bnn(nn.Conv2d(64, 64, 3), 0.05), ssvi.to_bnn(nn.Conv2d(64, 64, 3), 1.0)
    x = torch.randn(1, 64, 8, 8)
    assert kernels.chosen(x, conv.geometry, conv.posterior.s) == "native"
    assert kernels.chosen(x, dense.geometry, dense.posterior.s) == "dense"
    assert kernels.chosen(x.double(), conv.geometry, conv.posterior.s) == "dense"
    assert kernels.chosen(x.to("meta"), conv.geometry, conv.posterior.s) == "dense"
    line, volume = ssvi.to_bnn(nn.Conv1d(64, 64, 3), 0.05), ssvi.to_bnn(nn.Conv3d(64, 64, 3), 0.05)
    assert kernels.chosen(x, line.geometry, line.posterior.s) == "native"
    assert kernels.chosen(x, volume.geometry, volume.posterior.s) == "dense"
    assert " native" in ssvi.summary(conv)


@needs_native
def test_use_is_a_statement_and_a_context():
    layer = ssvi.to_bnn(nn.Linear(64, 64), 0.05)
    x, s = torch.randn(2, 64), layer.posterior.s
    with kernels.use("dense"):
        assert kernels.chosen(x, layer.geometry, s) == "dense"
        with kernels.use("native"):
            assert kernels.chosen(x, layer.geometry, layer.posterior.d) == "native"
        assert kernels.chosen(x, layer.geometry, s) == "dense"
    try:
        kernels.use("dense")
        assert kernels.chosen(x, layer.geometry, s) == "dense"
    finally:
        kernels.use("auto")
    assert kernels.chosen(x, layer.geometry, s) == "native"


def test_an_unknown_kernel_is_named():
    with pytest.raises(ValueError, match=r"kernels.use\('cuda'\): take one of auto, dense, native"):
        kernels.use("cuda")


def test_without_a_compiler_the_dense_kernel_serves_and_says_so_once(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    monkeypatch.setattr(native, "why_not", lambda: "the native kernels were not built: install a C++ compiler")
    monkeypatch.setattr(kernels, "_warned", False)
    bnn, x = ssvi.to_bnn(nn.Linear(8, 8), 0.2), torch.randn(2, 8)
    with pytest.warns(UserWarning, match="install a C\\+\\+ compiler"):
        bnn(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bnn(x).shape == (2, 8)
    assert kernels.available() == ("dense",)
    assert "no: the native kernels were not built" in findings()["native kernels"]
    with pytest.raises(RuntimeError, match=r"use\('native'\): the native kernels were not built"):
        kernels.use("native")


def losses(wrap, kernel: str) -> list[tuple[float, int]]:
    """The loss and the number of moved weights of every step: training with updates of gamma, from fixed seeds."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(lenet(size=8, width=4), 0.2, keep_dense=("0",))
    optimizer = torch.optim.SGD(bnn.parameters(), lr=0.05, momentum=0.9)
    subspace, elbo = ssvi.Subspace(bnn, optimizer, every=2, rate=0.3), ssvi.ELBO(bnn, train_size=100)
    forward, steps = wrap(bnn), []
    with kernels.use(kernel):
        for seed in range(5):
            torch.manual_seed(seed)
            x, y = torch.randn(8, 1, 8, 8), torch.randint(10, (8,))
            loss = elbo(F.cross_entropy(forward(x), y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update = subspace.step()
            steps.append((loss.item(), update.count if update else 0))
    return steps


@pytest.mark.filterwarnings("ignore")  # torch's own, about what it compiles
@pytest.mark.parametrize(
    ("kernel", "backend"),
    [
        ("dense", "aot_eager"),
        pytest.param("auto", "aot_eager", marks=needs_native),
        pytest.param("auto", "inductor", marks=[needs_native, pytest.mark.slow]),
        pytest.param("dense", "inductor", marks=pytest.mark.slow),
    ],
)
def test_a_compiled_network_trains_to_the_same_numbers(kernel, backend):
    torch._dynamo.reset()
    eager = losses(lambda net: net, kernel)
    compiled = losses(lambda net: torch.compile(net, backend=backend), kernel)
    assert [count for _, count in compiled] == [count for _, count in eager]
    assert [loss for loss, _ in compiled] == pytest.approx([loss for loss, _ in eager], rel=1e-5)
