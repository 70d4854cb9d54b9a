"""The program that measures what noise in a layer costs: its numbers on a layer whose answer is known, and its table."""

import math

import pytest
import torch
from click.testing import CliRunner
from programs import load_program
from torch import nn

import ssvi
from ssvi.cli import cli


@pytest.fixture
def program():
    return load_program("layer_noise")


def test_the_rise_is_that_of_the_second_derivative(program):
    """Two classes whose logits are theta x: l = log(1 + exp(-z)), z = x . (theta_0 - theta_1), noise of variance v in z."""
    torch.manual_seed(0)
    bnn = ssvi.to_bnn(nn.Linear(50, 2, bias=False), 1.0)
    x, y, share = torch.randn(400, 50), torch.zeros(400, dtype=torch.int64), 0.1
    mu = bnn.mu.detach()
    z = x @ (mu[:50] - mu[50:])
    variance = 2 * share**2 * mu.square().mean() * x.square().sum(1)
    p = z.sigmoid()
    expected = (0.5 * variance * p * (1 - p)).mean().item()
    found = program.rise(bnn, next(iter(program.posteriors(bnn).values())), share, 200, x, y)
    assert found == pytest.approx(expected, rel=0.1)
    assert torch.equal(bnn.mu.detach(), mu)


def test_each_layer_has_a_line(program, tmp_path):
    run = tmp_path / "run"
    CliRunner().invoke(cli, ["train", "digits", "--epochs", "1", "--out", str(run)], catch_exceptions=False)
    result = CliRunner().invoke(program.main, [str(run), "--images", "32", "--draws", "1"], catch_exceptions=False)
    lines = [line.split("|") for line in result.output.splitlines()[2:]]
    assert [line[1].strip() for line in lines] == list(program.posteriors(ssvi.load(run / "model.safetensors")))
    assert all(math.isfinite(float(line[5])) and 0 < float(line[4]) < 10 for line in lines)
