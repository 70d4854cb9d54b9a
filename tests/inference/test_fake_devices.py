"""On devices whose tensors have no numbers: every tensor of a step is made on the device, and the CPU waits for none.

The whole step runs on "meta". Fake CUDA tensors run what needs no backward pass: torch cannot start one for them without a
GPU. An update of gamma chooses by numbers, so neither can run it: `test_other_device.py` does, on a device with numbers.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

import ssvi
from ssvi.bench.launches import StepCount
from ssvi.kernels import ivon
from ssvi.kernels.geometry import Geometry
from ssvi.kernels.ivon import Evidence, Layer, Rates


@pytest.fixture(autouse=True)
def told_nothing() -> Iterator[None]:
    """StepCount answers every question for a number with 1, of which a warning knows nothing."""
    with warnings.catch_warnings(), ssvi.kernels.use("dense"):
        warnings.simplefilter("ignore", ssvi.TrainingWarning)
        yield


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 5))
    return ssvi.to_bnn(net, 0.2, prior_sigma=1.0)


def assert_made_on(device: str, count: StepCount) -> None:
    elsewhere = [made for made in count.made if made[0] != device and made[2] > 1]
    assert count.made
    assert not elsewhere, elsewhere


def batch() -> tuple[Tensor, Tensor]:
    return torch.empty(4, 2, 6, 6, device="meta"), torch.empty(4, dtype=torch.long, device="meta")


def test_a_step_of_ivon():
    bnn = network().to("meta")
    with StepCount() as start:
        optimizer = ssvi.IVON(bnn, train_size=10)
        subspace = ssvi.Subspace(bnn, optimizer, every=100, rate=0.3)
    assert_made_on("meta", start)
    x, y = batch()
    for call in range(1, 6):
        with StepCount() as count:
            with optimizer.sampled():
                F.cross_entropy(bnn(x), y).backward()
            optimizer.step()
            assert subspace.step() is None
        assert_made_on("meta", count)
        looked_at = call in (1, 2, 4)  # TrainingWatch
        assert bool(count.syncs) == looked_at
        assert not [made for made in count.made if made[1] == torch.int64]
    assert all(v.is_meta for state in optimizer.state.values() for v in state.values() if isinstance(v, Tensor))


def test_a_step_by_local_reparameterisation_waits_for_the_loss_alone():
    bnn = network().to("meta")
    with StepCount():
        elbo, optimizer = ssvi.ELBO(bnn, train_size=10), torch.optim.SGD(bnn.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        with StepCount() as count:
            x, y = batch()
            optimizer.zero_grad()
            elbo(F.cross_entropy(bnn(x), y)).backward()
            optimizer.step()
        assert_made_on("meta", count)
    assert count.syncs.total() <= 1  # of call 3, in which training is not looked at


@contextmanager
def fake_cuda() -> Iterator[StepCount]:
    with FakeTensorMode(), torch.no_grad(), StepCount() as count:
        yield count


def on_cuda(net: nn.Module) -> nn.Module:
    """The network with fake CUDA tensors, inside of a FakeTensorMode."""
    for module in net.modules():
        for name, value in module._parameters.items():
            if value is not None:
                empty = torch.empty(value.shape, dtype=value.dtype, device="cuda:0")
                module._parameters[name] = nn.Parameter(empty, value.requires_grad)
        for name, value in module._buffers.items():
            if value is not None:
                module._buffers[name] = torch.empty(value.shape, dtype=value.dtype, device="cuda:0")
    return net


@pytest.mark.parametrize("local", [False, True])
def test_prediction_on_a_gpu(local):
    bnn = network()
    with fake_cuda() as count:
        probs = ssvi.predict(on_cuda(bnn), torch.empty(4, 2, 6, 6, device="cuda:0"), samples=3, local=local)
    assert probs.device.type == "cuda"
    assert probs.shape == (4, 5)
    assert_made_on("cuda", count)
    assert not count.syncs


def test_the_update_of_ivon_on_a_gpu():
    with fake_cuda() as count:
        layers = []
        for size in (7, 20):
            mu, g, h, rho = (torch.empty(size, device="cuda:0") for _ in range(4))
            numbers = torch.empty((), device="cuda:0"), torch.empty((), device="cuda:0")
            if not torch.backends.cuda.is_built():
                rho = None  # without CUDA torch cannot copy between fake CUDA tensors
            layers.append(Layer(mu, g, h, numbers[0], rho, numbers[1], 10.0, 0.1))
        assert ssvi.kernels.ivon_module(layers) is ivon  # Triton has no address of a fake tensor
        noises = ivon.draw(layers, 10.0)
        totals = [torch.zeros_like(layer.h) for layer in layers]
        ivon.curvature(layers, noises, noises, 10.0, totals)
        evidence = [Evidence(noise, total, 1) for noise, total in zip(noises, totals, strict=True)]
        ivon.step(layers, [Rates(0.1, 0.9, 0.99, 1.0, 1)] * 2, evidence, 10.0)
    assert_made_on("cuda", count)
    assert not count.syncs


def test_autocast_on_a_gpu_makes_no_wide_weight():
    geometry = Geometry((8, 4, 3, 3), (1, 1), (1, 1), (1, 1))
    enabled, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    with fake_cuda() as count:
        x, theta = torch.empty(3, 4, 6, 6, device="cuda:0"), torch.empty(30, device="cuda:0")
        index = torch.empty(30, dtype=torch.int32, device="cuda:0")
        try:
            torch.set_autocast_enabled("cuda", True)  # `torch.autocast("cuda")` does nothing without a GPU
            torch.set_autocast_dtype("cuda", torch.bfloat16)
            y = ssvi.kernels.fixed(x, theta, index, geometry)
        finally:
            torch.set_autocast_enabled("cuda", enabled)
            torch.set_autocast_dtype("cuda", dtype)
    assert y.dtype == torch.bfloat16
    assert ("cuda", torch.bfloat16, geometry.d) in count.made
    assert ("cuda", torch.float32, geometry.d) not in count.made
