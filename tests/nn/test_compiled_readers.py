"""Layers that read their weights, in a compiled network: the numbers of the eager one, with one theta per call."""

import pytest
import torch
from read_layers import CASES, OWN, tensor

import ssvi

LAYERS = ["attention", "gru cell", "embedding with padding", "bilinear", "own"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_compiled_layer_gives_the_numbers_of_the_eager_one(name):
    make, inputs = CASES[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    bnn, x = ssvi.to_bnn(make(), 0.5, layers=OWN if name == "own" else None), inputs()
    compiled = torch.compile(bnn, backend="eager", fullgraph=True)
    with ssvi.at_mean(bnn):
        torch.testing.assert_close(tensor(compiled(*x)), tensor(bnn(*x)))


def test_what_a_compiled_layer_reads_twice_is_one_draw():
    """y = gate * (W^T W x): with two draws of W the outputs would have another mean."""
    make, inputs = CASES["own"]
    torch.manual_seed(0)
    torch._dynamo.reset()
    bnn, x = ssvi.to_bnn(make(), 1.0, layers={make: ("weight",)}, sigma_init=1.0), inputs()
    compiled = torch.compile(bnn, backend="eager")
    mu = bnn.posterior.dense(bnn.mu)
    drawn = torch.stack([compiled(*x) for _ in range(3000)])
    expected = bnn.gate * (x[0] @ (mu.T @ mu + mu.shape[0] * torch.eye(5)))  # E[W^T W] = mu^T mu + 6 sigma^2 I
    assert ((drawn.mean(0) - expected).abs() < 5 * drawn.std(0) / 3000**0.5).all()
    assert (drawn.std(0) > 0).all()
