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
