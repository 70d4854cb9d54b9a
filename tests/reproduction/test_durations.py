"""How long it takes: what finished runs took, and estimates of the others."""

from pathlib import Path

import pytest
import torch
from grids import trained

from ssvi.reproduction import durations
from ssvi.reproduction.durations import Units
from ssvi.reproduction.grids import Grid, planned
from ssvi.reproduction.scales import DIGITS, SCALES
from ssvi.reproduction.setups import Setup

EPOCHS = {
    "minutes/digits-vi": 2.0,
    "minutes/digits-ssvi-0.1": 3.0,
    "minutes/digits-ssvi-0.5": 9.0,
    "minutes/digits-ssvi-lrt-0.05": 7.0,
}
UNITS = Units("", "", "", start=1.0, epoch=EPOCHS, prediction=dict.fromkeys(EPOCHS, 0.01))


@pytest.fixture(autouse=True)
def units(monkeypatch):
    monkeypatch.setattr(durations, "stored_units", lambda: UNITS)


def seconds(method: str, density: float) -> float:
    runs = planned(Grid(DIGITS, (method,), (density,)), (0,), Path("nowhere"))
    took = durations.duration(runs, "minutes", samples=5, calibration=2.0)
    assert not took.measured
    return took.seconds


def test_an_estimate_is_units_times_the_calibration():
    rest = 2 * 1.0 + 2 * 359 * 5 * 0.01  # two processes, each of which evaluates
    assert seconds("vi", 0.1) == pytest.approx(2 * (30 * 2.0 + rest))
    assert seconds("ssvi", 0.5) == pytest.approx(2 * (30 * 9.0 + rest))
    assert seconds("ssvi", 0.05) == pytest.approx(2 * (30 * 3.0 + rest)), "the nearest density"
    runs = planned(Grid(DIGITS, ("vi",)), (0, 1), Path("nowhere"))
    assert durations.shift_seconds(runs, "minutes", 100, 5, 2.0) == pytest.approx(2 * 2 * 100 * 5 * 0.01)


def test_a_finished_run_took_what_its_log_says(tmp_path):
    [run] = planned(Grid(Setup("small", "digits", {"epochs": 1, "width": 4}), ("vi",)), (0,), tmp_path)
    took = durations.duration([trained(run)], "minutes", 5, 1e9)
    assert took.measured
    assert took.seconds == pytest.approx(run.folder.metrics()[0].seconds)


def test_the_calibration_is_short_and_leaves_torch_as_it_was():
    torch.manual_seed(3)
    expected, threads = torch.rand(1), torch.get_num_threads()
    torch.manual_seed(3)
    assert 0 < durations.calibrate() < 5
    assert torch.equal(torch.rand(1), expected)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize("scale", SCALES)
def test_every_kind_of_run_was_measured(scale, monkeypatch):
    monkeypatch.undo()
    known = durations.stored_units()
    assert known.start > 0
    grids = [grid for grids in SCALES[scale].grids.values() for grid in grids]
    for run in (run for grid in grids for run in planned(grid, (0,), Path("nowhere"))):
        nothing_but_training = durations.duration([run], scale, 0, 1.0).seconds - 2 * known.start
        assert nothing_but_training > 0, run.name
        assert durations.shift_seconds([run], scale, 1, 1, 1.0) > 0, run.name
