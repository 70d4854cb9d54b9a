"""Two processes, one run. gloo sometimes aborts at exit after all is done: the tests look at results, not at exit codes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from ssvi.training import model_file as saving
from ssvi.training.run_folder import RunFolder

FLAGS = ["--epochs", "2", "--model", "mlp", "--width", "24", "--batch-size", "64", "--every", "4", "--density", "0.2"]
QUIET = [
    "--method",
    "ssvi-lrt",
    "--sigma-init",
    "1e-12",
    "--keep-dense",
    "",
    "--removal",
    "abs_mu",
    "--beta-max",
    "0",
    "--threads",
    "1",
]


MIDDLE = ["--threads", "1", "--checkpoint-steps", "13"]
"""Of 20 steps per epoch: the last checkpoint before the end is that of step 39."""


def launch(processes: int, *options: str) -> list[str]:
    """`ssvi train` in so many processes."""
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *options]
    return [sys.executable, *(several if processes > 1 else []), "-m", "ssvi", "train"]


def torchrun(processes: int, *args: str) -> subprocess.CompletedProcess:
    return subprocess.run([*launch(processes), *args], capture_output=True, text=True, timeout=100)


def losses(folder: Path) -> list[float]:
    return [line.loss for line in RunFolder(folder).metrics()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[int, tuple[Path, subprocess.CompletedProcess]]:
    """One and two processes on the same global batches, with sigma so small that there is no noise to differ."""
    folder = tmp_path_factory.mktemp("runs")
    return {n: (folder / str(n), torchrun(n, *FLAGS, *QUIET, "--out", str(folder / str(n)))) for n in (1, 2)}


def test_two_processes_give_the_losses_of_one(runs):
    one, two = losses(runs[1][0]), losses(runs[2][0])
    assert len(one) == 2, runs[1][1].stderr
    assert two == pytest.approx(one, rel=1e-4), runs[2][1].stderr


def test_the_support_is_the_same_as_in_one_process(runs):
    """Addition scores averaged over ranks are those of the global batch."""
    one, two = (saving.load(runs[n][0]) for n in (1, 2))
    for a, b in zip(one.modules(), two.modules(), strict=True):
        if hasattr(a, "index"):
            same = torch.isin(a.index, b.index).float().mean()
            assert same > 0.98, "up to ties and rounding"


def test_traffic_is_s_sized_and_printed(runs):
    said = runs[2][1].stdout
    assert "2 processes average" in said
    numbers = re.search(r"average ([\d,]+) bytes of gradients per step \(dense VI: ([\d,]+)\)", said)
    sent, dense = (int(number.replace(",", "")) for number in numbers.groups())
    assert sent < 0.3 * dense


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run of two processes with noise; its newest checkpoints are the end, and one in the middle of the last epoch."""
    folder = tmp_path_factory.mktemp("noise") / "whole"
    done = torchrun(2, *FLAGS, *MIDDLE, "--out", str(folder))
    assert (folder / "model.safetensors").exists(), done.stderr
    return folder


def cut_short(whole: Path, cut: Path) -> Path:
    """The same run as if it had been killed in its last epoch, between two checkpoints."""
    shutil.copytree(whole, cut)
    RunFolder(cut).checkpoints()[-1].unlink()
    (cut / "model.safetensors").unlink()
    return cut


def assert_same_run(a: Path, b: Path) -> None:
    assert losses(a) == losses(b)
    assert (a / "model.safetensors").read_bytes() == (b / "model.safetensors").read_bytes()
    assert json.loads((a / "result.json").read_text()) == json.loads((b / "result.json").read_text())


def test_resume_with_two_processes(whole, tmp_path):
    """Each process goes on with its own noise and its own losses of the epoch so far: bit for bit."""
    cut = cut_short(whole, tmp_path / "cut")
    done = torchrun(2, "--resume", str(cut))
    assert (cut / "model.safetensors").exists(), done.stderr
    assert_same_run(cut, whole)


def test_resume_with_another_number_of_processes(whole, tmp_path):
    """The images of each step are the same, the noise is not: the losses are near those of the whole run, but others."""
    cut = cut_short(whole, tmp_path / "cut")
    done = torchrun(1, "--resume", str(cut))
    assert "processes: 2 until step" in done.stderr
    assert "the noise differs" in done.stderr
    assert losses(cut)[0] == losses(whole)[0]
    assert losses(cut)[1] != losses(whole)[1]
    assert losses(cut)[1] == pytest.approx(losses(whole)[1], rel=0.05)


def test_torchrun_restarts_a_killed_process(whole, tmp_path):
    """The same command goes on from the checkpoint by itself, and ends as the run that nobody killed."""
    again = tmp_path / "again"
    command = [*launch(2, "--max-restarts", "2"), *FLAGS, *MIDDLE, "--out", str(again)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: (again / "metrics.jsonl").exists(), process)
        os.kill(workers(process.pid)[-1], signal.SIGKILL)
        _, said = process.communicate(timeout=100)
    assert (again / "model.safetensors").exists(), said
    assert_same_run(again, whole)


def workers(torchrun: int) -> list[int]:
    """The children of a process, the youngest last."""
    return [
        int(child) for file in Path(f"/proc/{torchrun}/task").glob("*/children") for child in file.read_text().split()
    ]


def wait_for(happened, process: subprocess.Popen) -> None:
    """Until it has happened; an error if the process ends before."""
    while not happened():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(
            ["--method", "ssvi", "--temperature", "1e-12", "--h0", "1", "--lr", "0.02"],
            id="ivon at a tiny temperature",
        ),
        pytest.param(
            ["--method", "ssvi", "--temperature", "1e-12", "--h0", "1", "--lr", "0.02", "--micro-batches", "2"],
            id="ivon in parts of a batch",
        ),
        pytest.param(
            ["--method", "deterministic", "--model", "lenet", "--width", "4", "--sync-batchnorm"],
            id="BatchNorm over both processes",  # test_sync_batchnorm.py has its numbers
            marks=pytest.mark.slow,
        ),
    ],
)
def test_losses_without_noise_are_those_of_one_process(flags, tmp_path):
    args = ["--model", "mlp", "--width", "16", "--epochs", "1", "--examples", "512", "--threads", "1", *flags]
    said = {n: torchrun(n, *args, "--out", str(tmp_path / str(n))).stderr for n in (1, 2)}
    one, two = losses(tmp_path / "1"), losses(tmp_path / "2")
    assert len(one) == 1, said[1]
    assert two == pytest.approx(one, rel=1e-4), said[2]
