"""`ssvi plot` on real runs: the drawing, the table, JSON, and runs that are not evaluated."""

import json

import pytest
from command_line import run_command
from grids import planned, trained

from ssvi import comparison
from ssvi.comparison import parse_variation
from ssvi.training.run_folder import RunError


def test_plot_of_a_varied_setting(tmp_path):
    runs = planned(tmp_path / "runs", "ssvi", variations=[parse_variation("rate=0.1,0.3")])
    for run in runs:
        trained(run)
    with pytest.raises(RunError, match="is not evaluated: `ssvi evaluate"):
        run_command("plot", tmp_path / "runs", "--x", "rate", "--y", "nll")
    comparison.evaluate_runs(runs, {}, samples=2)
    out = tmp_path / "plot.svg"
    found = json.loads(run_command("plot", tmp_path / "runs", "--x", "rate", "--y", "nll", "--out", out, "--json"))
    assert [point["x"] for point in found["lines"][0]["points"]] == [0.1, 0.3]
    assert out.read_text().startswith("<svg")
    shown = run_command("plot", tmp_path / "runs", "--x", "epoch", "--y", "val_nll", "--out", out)
    assert "val_nll against epoch" in shown


def test_a_curve_over_the_sparsity_that_comes_out(tmp_path):
    """VD at two thresholds beside SSVI at two densities; sparsity is that of all layers, as in the tables."""
    runs = planned(
        tmp_path / "runs", "vd", "ssvi", densities=[0.1, 0.4], variations=[parse_variation("threshold=-6,-1")]
    )
    for run in runs:
        trained(run)
    results = comparison.evaluate_runs(runs, {}, samples=2)
    words = ("plot", tmp_path / "runs", "--x", "sparsity", "--y", "accuracy", "--out", tmp_path / "plot.svg", "--json")
    lines = {line["label"]: line["points"] for line in json.loads(run_command(*words))["lines"]}
    expected = {(run.place.method, run.sparsity) for run in results}
    assert {("vd", point["x"]) for point in lines["VD"]} | {("ssvi", point["x"]) for point in lines["SSVI"]} == expected
    assert len(expected) == 4
