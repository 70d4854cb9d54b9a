"""Which layers are known, which are refused with a reason, and what a user may say of her own."""

import warnings

import pytest
import torch
from read_layers import Gated
from torch import nn

import ssvi
from ssvi.nn.kinds import computes_like
from ssvi.nn.layers import posteriors


class Named(nn.Linear):
    """A subclass that changes only what is made."""

    def __init__(self, width: int):
        super().__init__(width, width)


class Doubled(nn.Linear):
    """A subclass that computes something else."""

    def forward(self, x):
        return 2 * super().forward(x)


def test_a_subclass_without_a_forward_of_its_own_is_converted():
    net = nn.Sequential(Named(6), nn.MultiheadAttention(6, 2).out_proj)
    bnn = ssvi.to_bnn(net, 0.5)
    assert [type(layer).__name__ for _, layer in ssvi.layers(bnn)] == ["Named", "NonDynamicallyQuantizableLinear"]
    assert isinstance(bnn[0], Named)
    assert isinstance(bnn[0], ssvi.nn.Linear)
    plain = ssvi.mean(bnn, dense=True)
    assert type(plain[0]) is Named
    x = torch.randn(3, 6)
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(bnn(x), plain(x))


def test_a_subclass_with_a_forward_of_its_own_is_converted_when_it_is_named():
    assert computes_like(Doubled) is None
    with pytest.raises(ValueError, match=r"layers=\{Doubled: \('weight',\)\}\) converts it"):
        ssvi.to_bnn(Doubled(4, 3), 0.5)
    bnn = ssvi.to_bnn(Doubled(4, 3), 1.0, layers={nn.Linear: ("weight",)})
    x = torch.randn(2, 4)
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(bnn(x), 2 * nn.functional.linear(x, bnn.weight, bnn.bias))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (nn.Embedding(5, 4, max_norm=1.0), "max_norm=1.0 writes into the weight: make it with max_norm=None"),
        (nn.Embedding(5, 4, sparse=True), "sparse=True asks for sparse gradients of the weight"),
        (nn.EmbeddingBag(5, 4, sparse=True), "sparse=True asks for sparse gradients of the weight"),
        (nn.Embedding(1, 4, padding_idx=0), "its only row is padding"),
    ],
)
def test_what_a_random_table_cannot_do_keeps_it_deterministic(layer, why):
    bnn = ssvi.to_bnn(nn.Sequential(layer, nn.Linear(4, 40)), 0.5)
    assert why in ssvi.summary(bnn)
    assert type(bnn[0]) is type(layer)


def test_one_frozen_weight_keeps_the_whole_layer_deterministic():
    lstm = nn.LSTM(4, 4)
    lstm.weight_hh_l0.requires_grad_(False)
    bnn = ssvi.to_bnn(nn.ModuleList([lstm, nn.Linear(4, 4)]), 0.5)
    assert list(posteriors(bnn)) == ["1"]
    assert "frozen: its weight_hh_l0 does not require a gradient" in ssvi.summary(bnn)


def test_a_layer_is_named_as_a_whole_or_by_its_parameter():
    net = nn.ModuleDict({"lstm": nn.LSTM(4, 4), "head": nn.Linear(4, 4)})
    densities = {name: p.density for name, p in posteriors(ssvi.to_bnn(net, 0.25, keep_dense=("lstm",))).items()}
    assert densities == {"lstm.weight_ih_l0": 1, "lstm.weight_hh_l0": 1, "head": 0.25}
    densities = {name: p.density for name, p in posteriors(ssvi.to_bnn(net, 0.25, keep_dense=("*hh_l0",))).items()}
    assert densities == {"lstm.weight_ih_l0": 0.25, "lstm.weight_hh_l0": 1, "head": 0.25}
    assert list(posteriors(ssvi.to_bnn(net, 0.25, skip=("lstm",)))) == ["head"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layers": {Gated: ("wieght",)}}, ValueError, "Gated has no parameter 'wieght': it has weight, gate"),
        ({"layers": {nn.Conv2d: ("weight",)}}, ValueError, "layers: the network has no Conv2d"),
        ({"layers": {Gated: "weight"}}, TypeError, r"Gated has 'weight' and needs names .* such as \('weight',\)"),
        ({"skip": (nn.Linear(2, 2),)}, TypeError, "skip has a Linear, and takes names or shell patterns of layers"),
        ({"keep_dense": (nn.Linear(2, 2),)}, TypeError, r"keep_dense has a Linear.*write keep_dense=\('name',\)"),
    ],
)
def test_a_wrong_argument_is_named(options, error, message):
    with pytest.raises(error, match=message):
        ssvi.to_bnn(nn.Sequential(Gated(), nn.Linear(5, 5)), 0.5, **options)


def test_a_warning_names_the_largest_weights_that_stay():
    net = nn.Sequential(Gated(), nn.Linear(5, 5), nn.utils.parametrizations.weight_norm(nn.Linear(5, 10)))
    with pytest.warns(ssvi.ConversionWarning) as told:
        ssvi.to_bnn(net, 0.5)
    assert len(told) == 1
    message = str(told[0].message)
    assert "only 21.7% of the 115 weights" in message
    first, second = (
        "2.parametrizations.weight (60): its weight is computed by a parametrization",
        "0 (30): Gated is not a",
    )
    assert 0 < message.find(first) < message.find(second)
    assert told[0].filename == __file__, "it points to the call of to_bnn"


def test_no_warning_about_what_the_user_has_decided():
    net = nn.Sequential(nn.Linear(50, 50), nn.Linear(50, 50).requires_grad_(False), nn.Linear(50, 5))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ssvi.to_bnn(net, 0.5, skip=("0",))
    assert not told


def test_the_summary_names_the_kernel_of_each_layer():
    net = nn.ModuleDict({"lstm": nn.LSTM(4, 4), "head": nn.Linear(64, 64), "up": nn.ConvTranspose2d(4, 4, 2)})
    with ssvi.kernels.use("dense"):
        assert {row.kernel for row in ssvi.summary(ssvi.to_bnn(net, 0.1)).rows} == {"dense"}
    if "native" in ssvi.kernels.available():
        rows = {row.name: row.kernel for row in ssvi.summary(ssvi.to_bnn(net, 0.1)).rows}
        assert rows == {"lstm.weight_ih_l0": "dense", "lstm.weight_hh_l0": "dense", "head": "native", "up": "native"}
