"""Small and busy cases: every condition is measured, and what was changed is put back."""

import os

import pytest
import torch

from ssvi.bench import measure, small


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_every_case_under_every_condition(monkeypatch, two_threads):
    threads, taken = [], []
    monkeypatch.setattr(small, "BATCHES", (1, 2))
    monkeypatch.setattr(small, "LAYERS", {"Linear 512": small.LAYERS["Linear 512"]})
    monkeypatch.setattr(small, "training_step", lambda *arguments, **options: lambda: None)
    monkeypatch.setattr(small, "taken_core", lambda: taken.append(1) or small.nullcontext())

    def interleaved(sides, turns):
        threads.append(torch.get_num_threads())
        return {name: 1.0 + place for place, name in enumerate(sides)}

    monkeypatch.setattr(small, "interleaved", interleaved)
    rows = small.small(1, lambda what: None)
    assert [row.threads for row in rows[::4]] == ["1 thread", "2 threads", "2 threads, a core taken"]
    assert threads == [1] * 4 + [2] * 8
    assert taken == [1]
    assert torch.get_num_threads() == 2
    layer, network = rows[:2]
    assert (layer.what, layer.batch, layer.plain_ms, layer.scatter_ms, layer.ours_ms) == (
        "Linear 512",
        1,
        1e3,
        2e3,
        3e3,
    )
    assert (network.plain_ms, network.ours_ms) == (1e3, 4e3), "the faster of the two memory formats"


def test_one_thread_has_no_other_core():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    assert small._conditions() == [("1 thread", 1)]
    torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are chosen on Linux alone")
def test_a_core_is_taken_by_a_process_that_ends(monkeypatch):
    started = []
    popen = measure.subprocess.Popen
    monkeypatch.setattr(measure.subprocess, "Popen", lambda command: started.append(popen(command)) or started[-1])
    with measure.taken_core():
        (other,) = started
        assert other.poll() is None
    assert other.returncode is not None
