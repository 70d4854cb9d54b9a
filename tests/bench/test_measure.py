"""The sides of a benchmark take turns, and each side does the work that it stands for."""

import pytest
import torch
from torch import nn

from ssvi.bench import cases, interleaved, measure


def test_sides_are_warmed_up_twice_and_then_take_turns(monkeypatch):
    calls, clock = [], iter([0.0, 1.0, 10.0, 12.0, 20.0, 25.0, 30.0, 34.0, 40.0, 43.0, 50.0, 59.0])
    monkeypatch.setattr(measure.time, "perf_counter", lambda: next(clock))
    seconds = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, turns=3)
    assert "".join(calls) == "aabb" + "ababab"
    assert seconds == {"a": 3.0, "b": 4.0}  # the medians of 1, 5, 3 and of 2, 4, 9


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
