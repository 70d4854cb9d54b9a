"""Where a run is trained: what its recipe says, and never what the machine happens to have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ssvi.inference import distributed
from ssvi.training.device import device_of, random_state, set_random_state
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunError
from ssvi.training.start import start

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", ["nonsense", "cuda:77", "meta2"])
def test_a_device_that_is_not_there_is_named(name):
    with pytest.raises(RunError, match=f"device='{name}' cannot be used here: .*: cpu"):
        device_of(name)


def test_a_run_on_a_device_that_is_not_there_leaves_no_folder(tmp_path: Path):
    with pytest.raises(RunError, match="cuda:77"):
        start(Recipe(device="cuda:77"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_state_of_a_generator_is_taken_up_again():
    before = random_state(CPU)
    first = torch.randn(3)
    set_random_state(CPU, before)
    assert torch.equal(torch.randn(3), first)


@pytest.mark.parametrize(("device", "backend"), [("cpu", "gloo"), ("cuda", "cpu:gloo,cuda:nccl")])
def test_processes_talk_as_the_device_asks_for(monkeypatch, device, backend):
    """A machine with GPUs whose runs stay on the CPU needs gloo: nccl cannot send what is not on a GPU."""
    chosen: list[str] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(distributed, "rendezvous", lambda url: iter([(torch.distributed.HashStore(), 0, 2)]))
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda backend, **_: chosen.append(backend))
    distributed.start(device)
    assert chosen == [backend]
