"""`ssvi evaluate`, `ssvi ood` and `ssvi corrupt` print their result and store it in the run folder."""

import json
import shutil

import pytest
from command_line import run_command
from PIL import Image
from small_runs import finished

DIGITS = [str(k) for k in range(10)]


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


@pytest.fixture
def costs_file(tmp_path):
    """A mistake costs 1, to ask 0.2."""
    file = tmp_path / "costs.csv"
    rows = [",".join([name, *("0" if other == name else "1" for other in DIGITS), "0.2"]) for name in DIGITS]
    file.write_text("\n".join([",".join(["class", *DIGITS, "ask"]), *rows]))
    return file


def test_evaluate_says_what_it_promises_and_what_came_of_it(run, costs_file):
    words = ("evaluate", run, "--samples", 2, "--level", 0.8, "--max-error", 0.6, "--costs", costs_file)
    printed = json.loads(run_command(*words, "--json"))
    decisions, costs = printed["decisions"], printed["action_costs"]
    assert (decisions["sets"]["level"], decisions["answers"]["max_error"]) == (0.8, 0.6)
    assert costs["actions"] == [*DIGITS, "ask"]
    assert costs["expected"] < costs["expected_most_probable"]
    table = run_command(*words)
    assert f"{decisions['sets']['coverage']:.2%} (" in table
    assert f"{decisions['answers']['answered']:.2%}" in table
    assert f"{costs['realised']:.4f}" in table
    assert "raw " in table


def test_evaluate_without_validation_images_says_so_in_one_line_and_still_knows_costs(tmp_path, costs_file):
    run = shutil.copytree(finished(validation=0.0), tmp_path / "run")
    assert "No validation images" in run_command("evaluate", run, "--samples", 1)
    assert not {"decisions", "action_costs"} & set(stored(run, "evaluation.json"))
    table = run_command("evaluate", run, "--samples", 1, "--costs", costs_file)
    assert "No validation images" in table
    assert f"{stored(run, 'evaluation.json')['action_costs']['realised']:.4f}" in table
