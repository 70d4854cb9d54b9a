"""The sides of a benchmark take turns, and each side does the work that it stands for."""

import pytest
import torch
from torch import nn

from ssvi.bench import cases, interleaved, measure


class Clock:
    """Time that passes only in the work of a side: the nth call of a side takes the nth of its seconds, then the last."""

    def __init__(self, monkeypatch, **seconds):
        self.now, self.calls, self.left = 0.0, "", {name: list(values) for name, values in seconds.items()}
        self.sides = {name: lambda name=name: self.work(name) for name in seconds}
        monkeypatch.setattr(measure.time, "perf_counter", lambda: self.now)

    def work(self, name):
        left = self.left[name]
        self.now += left.pop(0) if len(left) > 1 else left[0]
        self.calls += name


def test_sides_are_warmed_up_twice_and_then_take_turns(monkeypatch):
    clock = Clock(monkeypatch, a=[9.0, 9.0, 1.0, 5.0, 3.0], b=[9.0, 9.0, 2.0, 4.0, 9.0])
    assert interleaved(clock.sides, turns=3) == {"a": 3.0, "b": 4.0}  # the medians
    assert clock.calls == "aabb" + "ababab"


def test_work_that_is_too_short_to_be_timed_is_repeated_within_its_turn(monkeypatch):
    clock = Clock(monkeypatch, a=[9.0, measure.SHORTEST_TURN / 4], b=[1.0])
    seconds = interleaved(clock.sides, turns=2)
    assert clock.calls == "aabb" + 2 * "aaaab"
    assert seconds == pytest.approx({"a": measure.SHORTEST_TURN / 4, "b": 1.0})


@pytest.mark.parametrize(
    ("plain", "shape"),
    [(nn.Linear(6, 5), (4, 6)), (nn.Conv2d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2), (4, 4, 8, 8))],
)
def test_dense_vi_without_spread_is_the_plain_layer(plain, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    layer = cases.DenseVI(plain)
    nn.init.constant_(layer.log_sigma, -40.0)
    torch.testing.assert_close(layer(x), plain(x))


@pytest.mark.parametrize("density", [None, 0.5])
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_turn_of_a_layer_computes_the_gradients_anew(density, channels_last, monkeypatch):
    layers = []

    def kept(make):
        return lambda *args, **options: layers.append(make(*args, **options)) or layers[-1]

    monkeypatch.setattr(cases, "to_bnn", kept(cases.to_bnn))
    monkeypatch.setattr(cases, "DenseVI", kept(cases.DenseVI))
    turn = cases.layer_step(nn.Conv2d(4, 4, 3, padding=1), (2, 4, 8, 8), density, channels_last=channels_last)
    (layer,) = layers
    assert all(parameter.grad is None for parameter in layer.parameters())
    turn()
    first = [parameter.grad for parameter in layer.parameters()]
    assert all(grad.abs().sum() > 0 for grad in first)
    turn()
    assert all(parameter.grad is not grad for parameter, grad in zip(layer.parameters(), first, strict=True))
