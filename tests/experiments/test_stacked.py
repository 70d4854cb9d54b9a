"""Several networks trained at once are those that are trained one after the other."""

import itertools
from pathlib import Path

import pytest
import torch
from torch import nn

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture
def examples():
    from small.task import Examples

    x = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return Examples(x, x[:, 0].sin() + 0.1 * x[:, 1])


def network() -> nn.Module:
    from small.regression import WithNoise

    return WithNoise(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 1))).double()


def test_each_network_moves_as_if_it_were_alone(examples):
    from small.regression import gaussian_nll
    from small.training import Batches, PlainSettings, train_plain
    from tabular.stacked import started, train_stacked

    settings = [PlainSettings("Adam", *pair) for pair in itertools.product((0.003, 0.03), (0.0, 0.1))]
    batches = Batches(examples, 16, epochs=20)
    together = train_stacked([started(network, 7) for _ in settings], gaussian_nll, batches, settings)(examples.x)
    alone = [train_plain(started(network, 7), gaussian_nll, batches, each)(examples.x) for each in settings]
    torch.testing.assert_close(together, torch.stack(alone), rtol=1e-5, atol=1e-6)
    assert (alone[0] - alone[1]).abs().max() > 1e-3  # weight decay is seen


def test_tuning_chooses_as_it_does_one_after_the_other(examples):
    from small.regression import gaussian_nll
    from small.task import Problem, Task
    from small.training import tune_plain
    from tabular.stacked import tune_stacked

    problem = Problem(examples, network, gaussian_nll, evaluate=lambda predict: {})
    task = Task("", draw=lambda *_: problem, epochs=0, batch_size=16, optimizer="Adam")
    chosen = tune_stacked(network, gaussian_nll, examples, 16, 10, seed=3)
    assert chosen == tune_plain(problem, task, 10, seed=3)
