"""The program that compares pairs of opposite thetas with independent ones."""

import pytest
import torch
from click.testing import CliRunner
from programs import load_program
from torch import nn

import ssvi
from ssvi.cli import cli


@pytest.fixture(scope="module")
def program():
    return load_program("opposite_draws")


def test_averages_have_as_many_thetas_in_pairs_or_alone(program):
    """Each batch sees the same thetas; those of a pair lie opposite, those of two calls do not."""
    bnn = ssvi.to_bnn(nn.Linear(6, 3), 0.5, sigma_init=1.0).eval()
    x = torch.randn(4, 6)
    torch.testing.assert_close(
        program.averaged(bnn, [x, x[:1]], 4, 2, seed=3)[4:], program.averaged(bnn, [x[:1]], 4, 2, seed=3)
    )
    thetas: list[torch.Tensor] = []
    bnn.register_forward_hook(lambda layer, *_: thetas.append(layer.posterior.theta - layer.mu))
    for of_call in (1, 2):
        program.averaged(bnn, [x], 4, of_call, seed=0)
    alone, pairs = thetas[:4], thetas[4:]
    torch.testing.assert_close(pairs[0::2], [-theta for theta in pairs[1::2]])
    assert all((alone[0] + theta).abs().max() > 1e-2 for theta in alone)


def test_the_table_has_a_line_for_each_number(program, tmp_path):
    words = ["train", "digits", "--epochs", "1", "--validation", "0.1", "--out", str(tmp_path / "run")]
    CliRunner().invoke(cli, words, catch_exceptions=False)
    result = CliRunner().invoke(program.main, [str(tmp_path / "run"), "--samples", "2,6", "--repeats", "2"])
    rows = [[float(cell) for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == [2, 6]
    assert CliRunner().invoke(program.main, [str(tmp_path / "run"), "--samples", "3"]).exit_code == 2
