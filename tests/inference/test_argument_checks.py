"""Numbers that cannot be: the error names the argument and its value."""

import pytest
import torch
from torch import nn

import ssvi

WRONG_TYPE = [
    ("Subspace", "every", 2.5),
    ("Subspace", "every", True),
    ("Subspace", "every", "10"),
    ("Subspace", "every", torch.tensor(3)),
    ("Subspace", "mc_steps", 1.0),
    ("Subspace", "until", 7.5),
    ("Subspace", "candidates", 1.5),
    ("Subspace", "grace", None),
    ("Subspace", "micro_batches", 2.0),
    ("Subspace", "rate", "0.3"),
    ("Subspace", "rate", None),
    ("Subspace", "fresh_sigma", None),
    ("ELBO", "train_size", "1000"),
    ("ELBO", "train_size", [1, 2]),
    ("ELBO", "beta", "0.1"),
    ("ELBO", "beta", None),
    ("ELBO", "micro_batches", 0.5),
    ("IVON", "train_size", None),
    ("IVON", "lr", "0.1"),
    ("IVON", "h0", "1"),
    ("IVON", "temperature", None),
    ("IVON", "clip_radius", True),
    ("IVON", "rest_lr", [0.1]),
    ("IVON", "rest_decay", "5e-4"),
    ("IVON", "betas", 0.9),
    ("IVON", "betas", (0.9, "0.99")),
]
WRONG_VALUE = [
    ("Subspace", "until", -1),
    ("Subspace", "rate", float("nan")),
    ("Subspace", "fresh_sigma", -0.1),
    ("Subspace", "fresh_sigma", float("nan")),
    ("ELBO", "train_size", float("inf")),
    ("ELBO", "beta", -0.5),
    ("ELBO", "beta", float("nan")),
    ("ELBO", "micro_batches", 0),
    ("IVON", "lr", float("nan")),
    ("IVON", "temperature", 0),
    ("IVON", "rest_decay", -0.1),
    ("IVON", "betas", (0.9, 1.0)),
    ("IVON", "betas", (0.9, 0.99, 0.999)),
]


def make(what: str, name: str, value: object):
    bnn = ssvi.to_bnn(nn.Linear(6, 4), 0.5)
    arguments = {"every": 10, "rate": 0.3} if what == "Subspace" else {"train_size": 100}
    arguments[name] = value
    if what == "Subspace":
        return ssvi.Subspace(bnn, torch.optim.SGD(bnn.parameters(), lr=0.1), **arguments)
    return getattr(ssvi, what)(bnn, **arguments)


@pytest.mark.parametrize(("what", "name", "value"), WRONG_TYPE)
def test_a_wrong_type_is_named(what, name, value):
    """`every=2.5` once made updates at odd batches, without a word."""
    with pytest.raises(TypeError, match=rf"^{name}.*must be"):
        make(what, name, value)


@pytest.mark.parametrize(("what", "name", "value"), WRONG_VALUE)
def test_a_wrong_value_is_named(what, name, value):
    with pytest.raises(ValueError, match=rf"^{name}"):
        make(what, name, value)


@pytest.mark.parametrize(
    ("what", "name", "value"),
    [("Subspace", "every", torch.tensor(3).numpy()[()]), ("ELBO", "beta", 1), ("IVON", "h0", None), ("IVON", "lr", 0)],
)
def test_other_kinds_of_numbers_are_taken(what, name, value):
    assert type(make(what, name, value)).__name__ == what
