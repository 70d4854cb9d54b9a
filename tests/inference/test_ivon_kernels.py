"""IVON by the native update and by torch's operators: the same training, up to rounding, where the noise is the same."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ssvi
from ssvi import kernels
from ssvi.kernels import ivon, native
from ssvi.kernels.native import ivon as native_ivon

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


class TwoHeads(nn.Module):
    """A network whose second head is used in some batches only."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.first, self.second = nn.Linear(10, 32), nn.Linear(32, 3), nn.Linear(32, 3)
        self.uses_second = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.body(x).relu()
        return self.first(hidden) + (self.second(hidden) if self.uses_second else 0)


def made(**options) -> tuple[nn.Module, ssvi.IVON, ssvi.Subspace]:
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(TwoHeads(), 0.3, prior_sigma=0.5, **options)
    bnn.first.posterior.prior_sigma = 0.2  # a delta of its own
    temperature = ssvi.schedules.linear(1.0, steps=6, start=0.1)
    groups = {"first": {"lr": 0.05, "betas": (0.8, 0.99), "clip_radius": 0.5}}
    optimizer = ssvi.IVON(bnn, 0.1, train_size=200, betas=(0.9, 0.95), temperature=temperature, groups=groups)
    return bnn, optimizer, ssvi.Subspace(bnn, optimizer, every=4, rate=0.3)


def train(bnn: nn.Module, optimizer: ssvi.IVON, subspace: ssvi.Subspace, steps: range) -> None:
    """Two thetas for each step, the first with its batch in two parts; the second head rests in some steps."""
    for step in steps:
        torch.manual_seed(step)
        x, y = torch.randn(24, 10), torch.randint(3, (24,))
        bnn.uses_second = step % 3 != 1
        with optimizer.sampled():
            for part in (slice(0, 12), slice(12, 24)):
                (F.cross_entropy(bnn(x[part]), y[part]) / 2).backward()
        with optimizer.sampled():
            F.cross_entropy(bnn(x), y).backward()
        optimizer.step()
        subspace.step()


def states(bnn: nn.Module, optimizer: ssvi.IVON) -> dict[str, torch.Tensor]:
    own = {f"{name}.{key}": optimizer.state[layer.mu][key] for name, layer in ssvi.layers(bnn) for key in ("g", "h")}
    return bnn.state_dict() | own


@pytest.mark.parametrize("sigma_map", ["exp", "softplus"])
def test_native_and_torch_train_alike(sigma_map, monkeypatch):
    """With updates of gamma, groups, a schedule, several thetas, and a layer that has no gradient in some steps."""
    monkeypatch.setattr(native_ivon, "draw", ivon.draw)  # the same noise
    calls, step = [], native_ivon.step
    monkeypatch.setattr(native_ivon, "step", lambda *arguments: calls.append(1) or step(*arguments))
    results = []
    for name, native_steps in (("dense", 0), ("auto", 9)):
        bnn, optimizer, subspace = made(sigma_map=sigma_map)
        with kernels.use(name):
            train(bnn, optimizer, subspace, range(9))
        assert len(calls) == native_steps
        assert subspace.t == 2
        results.append(states(bnn, optimizer))
    for name, value in results[0].items():
        torch.testing.assert_close(value, results[1][name], rtol=2e-4, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}")


def test_a_layer_without_gradients_stays():
    bnn, optimizer, subspace = made()
    train(bnn, optimizer, subspace, range(1))
    before = {key: value.clone() for key, value in optimizer.state[bnn.second.mu].items()}
    mu = bnn.second.mu.detach().clone()
    train(bnn, optimizer, subspace, range(1, 2))
    assert torch.equal(bnn.second.mu, mu)
    assert all(torch.equal(optimizer.state[bnn.second.mu][key], value) for key, value in before.items())
    assert not torch.equal(optimizer.state[bnn.first.mu]["h"], before["h"][: bnn.first.mu.numel()])


def test_native_training_resumes_bit_for_bit():
    def run(interrupt: bool) -> dict[str, torch.Tensor]:
        parts = made()
        train(*parts, range(6))
        if interrupt:
            saved = copy.deepcopy([part.state_dict() for part in parts])
            parts = made()
            for part, state in zip(parts, saved, strict=True):
                part.load_state_dict(state)
        train(*parts, range(6, 11))
        return states(*parts[:2])

    whole, resumed = run(False), run(True)
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_bfloat16_is_trained_by_torchs_operators(monkeypatch):
    for name in ("draw", "curvature", "step"):
        monkeypatch.setattr(native_ivon, name, None)  # a call would be an error
    bnn = ssvi.to_bnn(nn.Linear(6, 3).bfloat16(), 0.5, prior_sigma=0.5, sigma_init=0.05, seed=0)
    optimizer = ssvi.IVON(bnn, train_size=100)
    before = optimizer.state[bnn.mu]["h"].clone()
    with optimizer.sampled():
        bnn(torch.ones(4, 6).bfloat16()).float().square().mean().backward()
    optimizer.step()
    assert not torch.equal(optimizer.state[bnn.mu]["h"], before)
