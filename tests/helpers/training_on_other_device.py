"""Training on another device than the CPU: run by tests/inference/test_other_device.py; prints JSON."""

import json
import tempfile
import traceback
from pathlib import Path

import other_device
import torch
import torch.nn.functional as F
from other_device import OnDevice
from torch import nn

import ssvi

UPDATES = {
    "one batch": {},
    "several batches": {"mc_steps": 2, "candidates": 2, "grace": 1, "addition": "snr"},
    "at the mean": {"addition": "mean", "fresh_sigma": "mean_rho", "removal": "mean_exp_abs"},
}


def network() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 5))
    return ssvi.to_bnn(net, 0.2, prior_sigma=1.0)


def batch(i: int, on_device: bool) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(i)
    x, y = torch.randn(4, 2, 6, 6, generator=generator), torch.randint(5, (4,), generator=generator)
    return (OnDevice(x), OnDevice(y)) if on_device else (x, y)


def by_gradients(bnn, on_device, **options):
    optimizer = torch.optim.AdamW(bnn.parameters(), lr=0.01, foreach=False)
    elbo = ssvi.ELBO(bnn, train_size=10, beta=ssvi.schedules.linear(1.0, steps=4))
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.4, **options)
    for i in range(4):
        x, y = batch(i, on_device)
        optimizer.zero_grad()
        elbo(F.cross_entropy(bnn(x), y)).backward()
        optimizer.step()
        subspace.step()
    return optimizer


def by_ivon(bnn, on_device):
    optimizer = ssvi.IVON(bnn, train_size=10, lr=0.1)
    subspace = ssvi.Subspace(bnn, optimizer, every=2, rate=0.4)
    for i in range(4):
        x, y = batch(i, on_device)
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        subspace.step()
    return optimizer


def check(train, **options) -> str:
    """Whether all that training leaves is on the device, with the numbers of the same training on the CPU."""
    cpu, other = network(), network()
    other_device.put(other)
    for bnn in (cpu, other):
        torch.manual_seed(1)
        optimizer = train(bnn, bnn is other, **options)
    left = [*other.parameters(), *other.buffers(), *(p.grad for p in other.parameters() if p.grad is not None)]
    left += [v for state in optimizer.state.values() for v in state.values() if torch.is_tensor(v) and v.dim() > 0]
    if not all(isinstance(t, OnDevice) for t in left):
        return "something is left on the CPU"
    pairs = zip(cpu.state_dict().values(), other.state_dict().values(), strict=True)
    return "" if all(torch.allclose(a, b.held, rtol=1e-4, atol=1e-6) for a, b in pairs) else "other numbers"


def predicts() -> str:
    bnn = network().eval()
    other_device.put(bnn)
    probs = ssvi.predict(bnn, batch(0, True)[0], 3)
    return "" if isinstance(probs, OnDevice) and torch.isfinite(probs.held).all() else "prediction"


def saves() -> str:
    """A file is read on the CPU, whatever the device of the network that was saved."""
    bnn, same = network(), network()
    other_device.put(bnn)
    with tempfile.TemporaryDirectory() as folder:
        ssvi.save(bnn, Path(folder) / "net.safetensors")
        plain = nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 5))
        state = ssvi.load(Path(folder) / "net.safetensors", net=plain).state_dict()
    return "" if all(torch.equal(value, state[name]) for name, value in same.state_dict().items()) else "saving"


def mixes() -> str:
    """The device must notice, or all other checks say nothing."""
    try:
        OnDevice(torch.ones(3)) + torch.ones(3)
    except RuntimeError:
        return ""
    return "the device does not notice"


def error_of(check_once) -> str:
    try:
        return check_once()
    except Exception:
        return traceback.format_exc()


with other_device.install(), ssvi.kernels.use("dense"):
    results = {name: error_of(lambda o=options: check(by_gradients, **o)) for name, options in UPDATES.items()}
    results |= {"IVON": error_of(lambda: check(by_ivon)), "predict": error_of(predicts), "save": error_of(saves)}
    results["mixes"] = error_of(mixes)
print(json.dumps(results), flush=True)
