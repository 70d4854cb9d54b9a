"""`ssvi evaluate`, `ssvi ood` and `ssvi corrupt` print their result and store it in the run folder."""

import json
import shutil

import pytest
from command_line import run_command
from PIL import Image
from small_runs import finished


def stored(run, name):
    """The JSON file of this name in the run folder."""
    return json.loads((run / name).read_text())


@pytest.mark.parametrize("method", ["ssvi", "vi", "deterministic"])
def test_evaluate_prints_what_it_stores(method, tmp_path):
    run = shutil.copytree(finished(method), tmp_path / "run")
    printed = json.loads(run_command("evaluate", run, "--samples", 2, "--json"))
    assert printed.items() <= stored(run, "evaluation.json").items()
    table = run_command("evaluate", run, "--samples", 2)
    assert f"{printed['metrics']['accuracy']['value']:.2%}" in table
    assert "the paper's ECE" in table
    assert "dense VI" in table


def test_ood_takes_several_data_sets_and_stores_each(run, tmp_path):
    strange = tmp_path / "strange" / "things"
    strange.mkdir(parents=True)
    for i in range(3):
        Image.new("L", (30, 30), 80 * i).save(strange / f"{i}.png")
    printed = json.loads(run_command("ood", run, "--data", "noise", "--data", strange.parent, "--json"))
    assert set(printed) == {"noise", str(strange.parent)}
    assert stored(run, "ood-strange.json")["outside"] == 3
    assert "AUROC" in run_command("ood", run, "--data", "noise")


def test_corrupt_by_severity(run, tmp_path):
    printed = json.loads(
        run_command(
            "corrupt", run, "--images", 10, "--samples", 1, "--no-cache", "--data-dir", tmp_path / "data", "--json"
        )
    )
    assert len(printed["severities"]) == 5
    assert not (tmp_path / "data").exists()
    assert stored(run, "corruption.json")["images"] == 10
