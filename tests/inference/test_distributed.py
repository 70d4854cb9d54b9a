"""Two processes, one run. gloo sometimes aborts at exit after all is done: the tests look at results, not at exit codes."""

import json
import re
import subprocess
import sys
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


def torchrun(processes: int, *args: str) -> subprocess.CompletedProcess:
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)] if processes > 1 else []
    )
    command = [sys.executable, *launch, "-m", "ssvi", "train", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


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


def test_resume_with_two_processes(runs, tmp_path):
    """Interrupted after an epoch and resumed, two ranks end where they would have ended."""
    args = [*FLAGS, "--threads", "1"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    torchrun(2, *args, "--out", str(whole))
    torchrun(2, *args, "--out", str(cut))
    folder = RunFolder(cut)
    folder.checkpoints()[-1].unlink()  # as if killed in the second epoch
    (cut / "model.safetensors").unlink()
    done = torchrun(2, "--resume", str(cut))
    assert (cut / "model.safetensors").exists(), done.stderr
    assert losses(cut) == losses(whole)
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert json.loads((cut / "result.json").read_text()) == json.loads((whole / "result.json").read_text())
    refused = torchrun(1, "--resume", str(cut))
    assert "was trained by 2 process(es)" in refused.stderr
