"""The processes of a run: whose noise is whose, what is refused, and when a command is one that torchrun started again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ssvi.inference import distributed
from ssvi.inference.distributed import noise_seed
from ssvi.training import processes
from ssvi.training.processes import NoiseWarning, check_processes, is_restart, require_folder
from ssvi.training.recipe import Recipe, RecipeError
from ssvi.training.run_folder import OccupiedError, RunError, RunFolder
from ssvi.training.start import start

SMALL = Recipe().replace(model="mlp", width=4, epochs=1, batch_size=128)


@pytest.fixture
def two_processes(monkeypatch):
    monkeypatch.setattr(distributed, "ranks", lambda: 2)


def test_the_first_process_has_the_seed_of_the_run():
    assert [noise_seed(seed, 0) for seed in (0, 1, 2**63 - 1)] == [0, 1, 2**63 - 1]


def test_no_two_runs_share_noise():
    """seed + rank would give seed 0, rank 1 and seed 1, rank 0 the same."""
    seeds = [noise_seed(seed, rank) for seed in range(40) for rank in range(16)]
    later = [noise_seed(seed, rank, 2, 100) for seed in range(40) for rank in range(2)]
    assert len(set(seeds + later)) == len(seeds + later)


def test_streams_of_neighbouring_seeds_are_not_shifts_of_each_other():
    draws = {key: torch.randn(1000, generator=_generator(*key)) for key in [(0, 0), (0, 1), (1, 0), (1, 1)]}
    stacked = torch.stack(list(draws.values()))
    correlation = torch.corrcoef(stacked).fill_diagonal_(0)
    assert correlation.abs().max() < 0.2, "6 standard deviations of 1/sqrt(1000)"


def _generator(seed: int, rank: int) -> torch.Generator:
    return torch.Generator().manual_seed(noise_seed(seed, rank))


@pytest.mark.parametrize("device", ["mps", "cuda:1"])
def test_devices_that_several_processes_cannot_share(two_processes, device):
    with pytest.raises(RunError, match=f"device='{device}' with 2 processes: take 'cpu'"):
        check_processes(SMALL.replace(device=device))
    check_processes(SMALL.replace(device="cuda"))


def test_one_process_may_use_any_device():
    check_processes(SMALL.replace(device="cuda:1"))


def test_a_batch_that_processes_cannot_share_equally(two_processes, tmp_path):
    with pytest.raises(RuntimeError, match="199 examples do not fill one batch of 1024"):
        start(SMALL.replace(examples=200, batch_size=1024), tmp_path / "run")


def test_another_number_of_processes_is_told_once(two_processes):
    with pytest.warns(
        NoiseWarning, match="processes: 4 until step 30, and 2 from here on; .* the noise differs"
    ) as told:
        processes.change_noise(seed=0, step=30, before=4)
    assert len(told) == 1
    first = torch.randn(3)
    with pytest.warns(NoiseWarning):
        processes.change_noise(seed=0, step=30, before=4)
    assert torch.equal(torch.randn(3), first)


def test_a_command_that_may_be_restarted_names_its_folder(monkeypatch):
    require_folder(None)
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    require_folder(Path("run"))
    with pytest.raises(RecipeError, match="--out is missing: torchrun --max-restarts=3"):
        require_folder(None)


def test_only_a_restart_takes_up_a_run(monkeypatch, tmp_path):
    run = tmp_path / "run"
    assert not is_restart(SMALL, run)
    RunFolder(run).create(SMALL)
    assert not is_restart(SMALL, run), "a second command"
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert is_restart(SMALL, run)
    assert is_restart(SMALL.replace(epochs=0), run), "the run has found out its epochs"
    assert not is_restart(SMALL.replace(lr=0.7), run), "another recipe is another run"


def test_the_id_of_the_job_tells_a_restart_when_machines_come_or_go(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-7")
    RunFolder(tmp_path / "run").create(SMALL)
    assert is_restart(SMALL, tmp_path / "run")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-8")
    assert not is_restart(SMALL, tmp_path / "run")
    with pytest.raises(OccupiedError, match="holds a run already"):
        start(SMALL, tmp_path / "run")


def test_jobs_without_an_id_are_not_one_job(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    RunFolder(tmp_path / "run").create(SMALL)
    assert not is_restart(SMALL, tmp_path / "run")


def test_a_lost_process_is_one_line(two_processes, tmp_path):
    with (
        pytest.raises(RunError, match="another process has ended"),
        processes.needs_all(RunFolder(tmp_path)),
    ):
        raise RuntimeError("[third_party/gloo/gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer")


def test_other_errors_stay_what_they_are(two_processes, tmp_path):
    with pytest.raises(RuntimeError, match="mat1 and mat2"), processes.needs_all(RunFolder(tmp_path)):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
