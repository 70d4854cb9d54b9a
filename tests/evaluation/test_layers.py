"""What training made of each layer, and whether the removal criteria agree."""

import numpy as np
import pytest
import torch
from small_runs import finished
from torch import nn

import ssvi
from ssvi.evaluation import FinishedRun, agreement, layer_rows
from ssvi.evaluation.layers import dead_units


def test_layers_tell_what_training_made_of_them():
    rows = {method: layer_rows(FinishedRun(finished(method)).net) for method in ("ssvi", "vi", "deterministic")}
    assert [row.d for row in rows["ssvi"]] == [row.d for row in rows["deterministic"]]
    assert rows["ssvi"][0].density == rows["vi"][1].density == 1.0
    sparse = rows["ssvi"][1:]
    assert sum(row.s for row in sparse) / sum(row.d for row in sparse) == pytest.approx(0.05, abs=0.001)
    assert rows["deterministic"][0].sigma is None


def test_layers_tell_the_sigma_that_training_started_with():
    """By natural gradients it is 1 / sqrt(N (h0 + delta)), N delta = 1 / prior_sigma^2; else it is sigma_init."""
    natural = FinishedRun(finished("ssvi", prior_sigma=1.0, h0=0.5, temperature=1.0))
    size = len(natural.data.train) - len(natural.validation)
    start = (0.5 * size + 1) ** -0.5
    assert [row.sigma_start for row in layer_rows(natural.net)] == pytest.approx([start] * 4)
    by_gradients = FinishedRun(finished("ssvi-lrt", sigma_init=0.01))
    assert [row.sigma_start for row in layer_rows(by_gradients.net)] == pytest.approx([0.01] * 4)


def test_numbers_of_a_layer_are_medians_over_its_live_weights():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Sequential(nn.Linear(20, 30)), 0.5, sigma_init=0.1)
    posterior = bnn[0].posterior
    row = layer_rows(bnn)[0]
    assert (row.layer, row.kind, row.d, row.s) == ("0", "Linear", 600, 300)
    assert row.sigma == pytest.approx(0.1)
    assert row.snr == pytest.approx((posterior.mu.abs() / 0.1).median().item(), rel=1e-5)


def test_a_posterior_that_layers_share_has_one_row():
    linear = nn.Linear(6, 6)
    twice = nn.Sequential(linear, nn.Linear(6, 6))
    twice[1].weight = linear.weight
    assert [row.layer for row in layer_rows(ssvi.to_bnn(twice, 0.5))] == ["0"]


def test_dead_units_are_outputs_without_a_live_weight():
    bnn = ssvi.to_bnn(nn.Linear(4, 5), 0.1)
    posterior = bnn.posterior
    assert (posterior.d, posterior.s) == (20, 2)
    posterior.index.copy_(torch.tensor([4, 7]))  # both in the row of output 1
    assert dead_units(posterior) == pytest.approx(0.8)


def test_criteria_2_and_4_agree_and_the_textbook_formula_does_not():
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(200, 200), 1.0, sigma_init=0.005)
    nn.init.normal_(bnn.posterior.mu, std=0.005)
    result = agreement(bnn, 0.3)
    assert np.allclose(np.diag(result.iou), 1.0)
    assert np.allclose(result.iou, np.transpose(result.iou))
    assert [row.snr_abs for row in result.snr_vs] == [1.0, 1.0, 1.0]
    assert result.snr_vs[0].snr_abs_textbook > 0.99 > 0.6 > result.snr_vs[2].snr_abs_textbook


def test_without_random_weights_there_is_no_agreement():
    assert agreement(nn.Linear(3, 3), 0.3) is None
