"""BatchNorm over two processes: what one process computes with the whole batch, to rounding."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from ssvi.inference import sync_batchnorm
from ssvi.kernels.native import batchnorm as fused

PROGRAM = Path(__file__).parents[1] / "helpers" / "sync_batchnorm_in_two_processes.py"


def test_outputs_gradients_and_statistics_are_those_of_the_whole_batch():
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(PROGRAM)]
    done = subprocess.run([sys.executable, *launch], capture_output=True, text=True, timeout=100)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr
    checks = json.loads(lines[0])
    assert len(checks) == 28
    assert [name for name, right in checks.items() if not right] == []


def test_one_process_needs_none_of_it():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert sync_batchnorm.synchronised(net) is net


@pytest.mark.skipif(not fused.available(), reason="needs the native kernels")
def test_fused_kernels_leave_a_norm_with_its_own_forward_alone():
    norm, x = nn.BatchNorm2d(3), torch.randn(2, 3, 4, 4)
    assert fused.supports(norm, x)
    norm.forward = lambda x: x
    assert not fused.supports(norm, x)
    del norm.forward
    assert fused.supports(norm, x)


def test_norms_in_evaluation_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(sync_batchnorm.distributed, "ranks", lambda: 2)
    net = nn.Sequential(nn.BatchNorm1d(3)).eval()
    x = torch.randn(4, 3)
    assert torch.equal(sync_batchnorm.synchronised(net)(x), net(x))
