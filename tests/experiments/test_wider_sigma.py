"""The program that asks what another sigma would do to a trained network: the sigmas that it gives, and its table."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from programs import load_program
from torch import nn

import ssvi
from ssvi.cli import cli


@pytest.fixture(scope="module")
def program():
    return load_program("wider_sigma")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wider") / "run"
    words = ["train", "digits", "--epochs", "1", "--validation", "0.1", "--out", str(folder)]
    CliRunner().invoke(cli, words, catch_exceptions=False)
    return folder


def test_the_sigmas(program):
    torch.manual_seed(0)
    posterior = ssvi.to_bnn(nn.Linear(50, 20), 0.5).posterior
    torch.testing.assert_close(program.scaled(3.0)(posterior), 3 * posterior.sigma)
    expected = 0.2 * posterior.mu.detach().square().mean().sqrt()
    torch.testing.assert_close(program.share_of_weights(0.2)(posterior), expected.expand(posterior.s))


def test_little_noise_is_the_mean_and_much_noise_knows_nothing(program, run):
    words = [str(run), "--factors", "1e-6,1e3", "--shares", "1e-6", "--samples", "3"]
    result = CliRunner().invoke(program.main, words, catch_exceptions=False)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[2:]]
    assert [row[0] for row in rows] == ["sigma x 1e-06", "sigma x 1000", "sigma = 1e-06 r"]
    none, wide, share = (float(row[2]) for row in rows)
    assert none == pytest.approx(share, abs=1e-3)
    assert wide > none + 0.5


@pytest.mark.parametrize("words", [["--factors", "1,-1"], ["--shares", "0"], ["--factors", "nan"], ["--factors", "a"]])
def test_a_sigma_that_is_none_is_refused(program, run, words):
    result = CliRunner().invoke(program.main, [str(run), *words])
    assert result.exit_code == 2
    assert words[0] in result.output
    assert "| sigma x" not in result.output
