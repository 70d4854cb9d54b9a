"""`ssvi inspect`."""

import json

import pytest
from command_line import run_command
from small_runs import finished


@pytest.mark.parametrize("method", ["ssvi", "vi", "deterministic"])
def test_inspect_shows_layers_and_agreement(method):
    table = run_command("inspect", finished(method))
    assert "dead units" in table
    assert ("snr_abs_textbook" in table) == (method != "deterministic")
    printed = json.loads(run_command("inspect", finished(method), "--rate", 0.01, "--json"))
    assert len(printed["layers"]) == 4
    assert (printed["agreement"] == {}) == (method == "deterministic")


def test_inspect_shows_what_was_recorded_while_the_run_was_trained():
    run = finished("ssvi-lrt", record_iou=True, every=5)
    printed = json.loads(run_command("inspect", run, "--json"))["iou"]
    updates = [printed[stage]["update"] for stage in ("start", "middle", "end")]
    assert updates == [0, printed["updates"] // 2, printed["updates"] - 1]
    assert printed["end"]["exact"][1][3] == 1.0
    table = run_command("inspect", run)
    exact, textbook = printed["end"]["exact"][0][2], printed["end"]["textbook"][2][0]
    last = table[table.index("IoU at the end of the updates") :].splitlines()
    rows = {cells[0]: cells[1:] for row in last if len(cells := row.replace("│", " ").split()) == 7}
    assert rows["abs_mu"][2] == f"{exact:.3f}"
    assert rows["mean_abs"][0] == f"{textbook:.3f}"


def test_without_a_record_nothing_is_shown_of_it():
    assert "of the updates" not in run_command("inspect", finished("ssvi"))
    assert json.loads(run_command("inspect", finished("ssvi"), "--json"))["iou"] == {}
