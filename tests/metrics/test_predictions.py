"""Predictions collected batch by batch give the metrics of the whole data set."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvi import metrics as m


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 20))
def test_streaming_gives_the_same_as_all_at_once(n, batch):
    generator = torch.Generator().manual_seed(0)
    probs = (3 * torch.randn(n, 4, dtype=torch.float64, generator=generator)).softmax(-1)
    labels = torch.multinomial(probs, 1, generator=generator).squeeze(1)
    collected = m.Predictions()
    for p, y in zip(probs.split(batch), labels.split(batch), strict=True):
        collected.add(p, y)
    assert len(collected) == n
    for metric in (m.accuracy, m.nll, m.brier, m.ece, m.adaptive_ece, m.marginal_calibration_error, m.aurc):
        assert metric(collected.probs, collected.labels) == metric(probs, labels)


def test_collecting_refuses_what_does_not_fit():
    collected = m.Predictions()
    with pytest.raises(ValueError, match="no batch was added"):
        _ = collected.probs
    collected.add(torch.tensor([[0.5, 0.5]]), torch.tensor([0]))
    with pytest.raises(ValueError, match="3 classes after batches of 2"):
        collected.add(torch.tensor([[0.5, 0.5, 0.0]]), torch.tensor([0]))
