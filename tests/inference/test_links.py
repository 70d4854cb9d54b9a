"""Links: what is averaged, for every kind of output, and errors that say which link fits."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import ssvi
from ssvi.inference.links import LinkError, linked
from ssvi.nn.random_tensor import drawn, opposite, pinned_at, random_tensors


@dataclass
class Detection:
    boxes: Tensor
    scores: Tensor
    hidden: Tensor | None = None


class Pair(NamedTuple):
    logits: Tensor
    value: Tensor


class ModelOutput(OrderedDict):
    """As Hugging Face's: a dict whose parts are attributes too."""

    def __getattr__(self, name):
        return self[name]


class Heads(nn.Module):
    """A network whose two heads come out in any form."""

    def __init__(self, form):
        super().__init__()
        self.first, self.second, self.form = nn.Linear(6, 3), nn.Linear(6, 2), form

    def forward(self, x):
        return self.form(self.first(x), self.second(x))


def bayesian(form):
    torch.manual_seed(0)
    return ssvi.to_bnn(Heads(form), 0.5, sigma_init=0.5), torch.randn(4, 6)


def expected(bnn, x, samples=3):
    """The outputs of both heads for the thetas of the generator with seed 1, which are a pair and one more."""
    generator, outputs, thetas = torch.Generator().manual_seed(1), [], {}
    for number in range(samples):
        thetas = opposite(thetas) if number % 2 else drawn(random_tensors(bnn), generator)
        with torch.no_grad(), pinned_at(thetas):
            outputs.append((bnn.first(x), bnn.second(x)))
    return (torch.stack(heads) for heads in zip(*outputs, strict=True))


def predicted(bnn, x, link=None, predict=ssvi.predict):
    return predict(bnn, x, samples=3, link=link, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: {"logits": a, "hidden": b},
        lambda a, b: ModelOutput(loss=None, logits=a, cache=object()),
        Pair,
        lambda a, b: a,
    ],
)
def test_the_logits_are_taken_where_an_output_has_them(form):
    bnn, x = bayesian(form)
    first, _ = expected(bnn, x)
    torch.testing.assert_close(predicted(bnn, x), first.softmax(-1).mean(0))
    torch.testing.assert_close(predicted(bnn, x, "sigmoid"), first.sigmoid().mean(0))
    torch.testing.assert_close(predicted(bnn, x, lambda y: y.exp()), first.exp().mean(0))
    assert predicted(bnn, x, predict=ssvi.predict_samples).shape == (3, 4, 3)


@pytest.mark.parametrize("form", [lambda a, b: {"boxes": a, "scores": b}, Detection])
def test_named_parts_have_links_of_their_own(form):
    bnn, x = bayesian(form)
    boxes, scores = expected(bnn, x)
    result = predicted(bnn, x, {"scores": "softmax", "boxes": lambda y: y.square()})
    assert list(result) == ["scores", "boxes"]
    torch.testing.assert_close(result["scores"], scores.softmax(-1).mean(0))
    torch.testing.assert_close(result["boxes"], boxes.square().mean(0))
    for_all = predicted(bnn, x, "identity")
    assert list(for_all) == ["boxes", "scores"]
    torch.testing.assert_close(for_all["scores"], scores.mean(0))
    with pytest.raises(LinkError, match=r'boxes, scores: say what is averaged, link=\{"boxes": "identity", "scores"'):
        predicted(bnn, x)
    with pytest.raises(LinkError, match="link names masks, and the network's output has only boxes, scores"):
        predicted(bnn, x, {"masks": "sigmoid"})


@pytest.mark.parametrize("form", [lambda a, b: (a, b), lambda a, b: [a, b]])
def test_a_tuple_of_tensors(form):
    bnn, x = bayesian(form)
    first, second = expected(bnn, x)
    result = predicted(bnn, x, "softmax")
    assert isinstance(result, tuple)
    torch.testing.assert_close(result[0], first.softmax(-1).mean(0))
    torch.testing.assert_close(result[1], second.softmax(-1).mean(0))
    torch.testing.assert_close(predicted(bnn, x, lambda y: y[1]), second.mean(0))
    with pytest.raises(LinkError, match='say what is averaged, link="identity"'):
        predicted(bnn, x)
    with pytest.raises(LinkError, match="has no names"):
        predicted(bnn, x, {"first": "softmax"})


def test_one_output_is_not_a_class():
    bnn, x = ssvi.to_bnn(nn.Linear(20, 1), 0.5), torch.randn(3, 20)
    with pytest.raises(LinkError, match=r'the softmax of one number is 1: predict\(..., link="sigmoid"\) .*"identity"'):
        ssvi.predict(bnn, x)
    with pytest.raises(LinkError, match="sigmoid"):
        ssvi.evaluate(bnn, [(x, torch.zeros(3, dtype=torch.long))])
    with pytest.raises(LinkError, match=r"shape \(4,\)"):
        linked(torch.zeros(4), None)
    assert ssvi.predict(bnn, x, link="sigmoid").shape == (3, 1)


@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 4, 4), 1), ((2, 5, 3), -1)])
def test_the_axis_of_the_classes_must_be_named_where_it_is_not_clear(shape, axis):
    logits = torch.randn(shape)
    with pytest.raises(LinkError, match=rf"link=lambda y: y.softmax\({axis}\)"):
        linked(logits, None)
    torch.testing.assert_close(linked(logits, lambda y: y.softmax(axis)).sum(axis), torch.ones_like(logits).mean(axis))


def test_half_precision_is_averaged_in_float32():
    for link in ("softmax", "sigmoid", "identity"):
        assert linked(torch.zeros(2, 3, dtype=torch.bfloat16), link).dtype == torch.float32
        assert linked(torch.zeros(2, 3, dtype=torch.float64), link).dtype == torch.float64


def test_what_cannot_be_averaged_is_refused():
    with pytest.raises(LinkError, match="'relu' is unknown: take one of softmax, sigmoid, identity"):
        linked(torch.zeros(2, 3), "relu")
    with pytest.raises(LinkError, match=r"dtype torch.int64, which has no average"):
        linked({"y": torch.zeros(2, 3), "ids": torch.zeros(2, dtype=torch.long)}, "identity")
    bnn, x = bayesian(Detection)
    with pytest.raises(TypeError, match="link gives Detection, which cannot be averaged"):
        predicted(bnn, x, lambda output: output)
    assert isinstance(predicted(bnn, x, lambda output: {"b": (output.boxes,)}), Mapping)
