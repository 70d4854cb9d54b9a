"""A mixture is the average of the probabilities of its networks."""

import pytest
import torch
from torch import nn

from ssvi.inference.predict import Mixture


def test_probabilities_are_averaged_and_not_logits():
    torch.manual_seed(0)
    nets = [nn.Linear(4, 3).double() for _ in range(3)]
    x = 3 * torch.randn(5, 4, dtype=torch.float64)
    mixture = Mixture(nets)
    want = sum(net(x).softmax(-1) for net in nets) / 3
    torch.testing.assert_close(mixture(x).softmax(-1), want)
    torch.testing.assert_close(mixture.each(x)[1], nets[1](x).softmax(-1))
    of_logits = (sum(net(x) for net in nets) / 3).softmax(-1)
    assert not torch.allclose(of_logits, want, atol=1e-3)


def test_a_mixture_of_nothing_is_refused():
    with pytest.raises(ValueError, match="members is empty"):
        Mixture([])
