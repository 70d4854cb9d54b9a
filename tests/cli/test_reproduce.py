"""`ssvi reproduce`: the list, one small item from training to the page, mistakes, and that the largest scale starts."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from command_line import run_command
from grids import trained

from ssvi import comparison
from ssvi.cli import cli, many_runs, reproduce, reproduction_list
from ssvi.comparison import LocalProcesses, Outcome, Variation, evaluate_runs
from ssvi.reproduction import durations
from ssvi.reproduction.durations import Units
from ssvi.reproduction.grids import Grid, planned
from ssvi.reproduction.items import ITEMS
from ssvi.reproduction.scales import MINUTES, PAPER, PAPER_10, SCALES
from ssvi.reproduction.setups import Setup

TINY = Setup("tiny", "digits", {"epochs": 1, "width": 4, "examples": 300})
FRESH = Grid(TINY, ("ssvi-lrt",), (0.1,), (Variation("fresh_sigma", ("mean", 0.001)),))


@pytest.fixture
def tiny(monkeypatch):
    """A scale that trains for one item alone."""
    scale = replace(MINUTES, grids=dict.fromkeys(ITEMS, ()) | {"fresh": (FRESH,)})
    monkeypatch.setattr(reproduce, "SCALES", {"minutes": scale})


@pytest.fixture
def measured(monkeypatch):
    units = Units("2026-01-01", "a processor", "", 1.0, {"minutes/tiny-ssvi-lrt-0.1": 4.0}, {})
    monkeypatch.setattr(durations, "stored_units", lambda: units)
    monkeypatch.setattr(reproduction_list, "stored_units", lambda: units)
    monkeypatch.setattr(reproduction_list, "calibrate", lambda: 1.0)
    monkeypatch.setattr(reproduction_list.os, "cpu_count", lambda: 2)


def test_an_item_is_trained_evaluated_and_put_on_a_page(tmp_path, tiny):
    """All runs but one are there before, because a run in a process of its own takes seconds."""
    *most, _ = planned(FRESH, (0, 1), tmp_path / "out")
    evaluate_runs([trained(run) for run in most], {}, samples=2)
    words = ["reproduce", "fresh", "--seeds", "0,1", "--samples", "2", "--jobs", "1", "--json"]
    words += ["--out", str(tmp_path / "out"), "--write", str(tmp_path / "page.md")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stderr.count(": trained,") == 1
    told = json.loads(done.stdout)
    assert told["command"] == "ssvi reproduce fresh --scale minutes --seeds 0,1 --samples 2"
    [item] = told["items"]
    assert len(item["tables"][0]["rows"]) == 2
    assert {verdict["outcome"] for verdict in item["verdicts"]} <= {"repeated", "not repeated"}
    html, text = (tmp_path / "out" / "reproduction.html").read_text(), (tmp_path / "page.md").read_text()
    for verdict in item["verdicts"]:
        assert verdict["claim"] in html
        assert f"- **{verdict['outcome']}**: {verdict['claim']}" in text
    missed = [verdict["claim"] for verdict in item["verdicts"] if verdict["outcome"] == "not repeated"]
    assert all(html.count(claim) == 2 for claim in missed), "in the list of the item, and in that at the top"
    assert html.count('<svg class="plot"') == 3, "two curves over the epochs, and the end by value"
    assert "ssvi reproduce fresh --scale minutes" in html
    figures = {file.name for file in (tmp_path / "figures").iterdir()}
    assert figures == {f"reproduce-minutes-fresh-{i}.svg" for i in (1, 2, 3)}
    assert all(f"(figures/{name})" in text for name in figures)
    table = run_command(*words[:-5], "--out", tmp_path / "out")
    assert "fresh (Figure 3, right)" in table


def test_what_is_trained_so_far_is_shown_without_training(tmp_path, tiny):
    *most, last = planned(FRESH, (0, 1), tmp_path)
    evaluate_runs([trained(run) for run in most], {}, samples=2)
    words = ["reproduce", "fresh", "--seeds", "0,1", "--samples", "2", "--jobs", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli, [*words, "--so-far"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert not last.path.exists()
    page = (tmp_path / "reproduction.html").read_text()
    assert "1 of 4 runs are not trained, so some rows are of fewer seeds." in page


def test_other_images_are_tasks_of_their_own_until_their_results_are_there(tmp_path, monkeypatch):
    """One process does what is missing; a run that is not trained, and a folder that is read-only, are left alone."""
    run, read_only, untrained = planned(Grid(TINY, ("ssvi",), (0.1,)), (0, 1, 2), tmp_path)
    for each in (run, read_only):
        trained(each)
    monkeypatch.setattr(many_runs.os, "access", lambda path, _: path != read_only.path)
    scale = replace(MINUTES, ood={"tiny": ("noise",)}, corrupted=3)
    runs = {ITEMS[name]: {TINY: [run, read_only, untrained]} for name in ("table-1", "ood", "corrupt")}
    ood, corrupt = reproduce._shifts(runs, scale, 2)
    assert ood == (("ood", "--samples", "2", "--data", "noise"), [run])
    assert corrupt == (("corrupt", "--samples", "2", "--images", "3"), [run])
    many_runs.do_evaluations([run], ood[0], 1, tmp_path, LocalProcesses())
    assert [missing for _, missing in reproduce._shifts(runs, scale, 2)] == [[], [run]]


def test_without_items_they_are_listed_with_what_they_take(tmp_path, tiny, measured):
    told = json.loads(run_command("reproduce", "--json", "--out", tmp_path))
    by_name = {item["item"]: item for item in told["items"]}
    assert list(by_name) == list(ITEMS)
    assert by_name["fresh"]["runs"] == told["runs"] == 6
    assert by_name["fresh"]["seconds"] == pytest.approx(6 * (2 * 1.0 + 4.0))
    assert (by_name["fresh"]["needs"], by_name["flops"]["needs"]) == ("digits", "nothing")
    said = run_command("reproduce", "--out", tmp_path)
    assert "All items: 6 runs, 18.0 s here on 2 cores." in said
    assert "a processor on 2026-01-01" in said


def test_what_takes_days_says_on_how_many_machines_it_would_take_one(tmp_path, tiny, measured, monkeypatch):
    monkeypatch.setattr(reproduction_list, "calibrate", lambda: 1e5)
    said = run_command("reproduce", "--out", tmp_path)
    assert "20.8 days here on 2 cores; on 21 machines like this one it would take one day" in said
    assert "The longest run takes 6.9 days on one core" in said


def test_an_unknown_item_is_an_error_with_the_names():
    said = CliRunner().invoke(cli, ["reproduce", "table-9"])
    assert said.exit_code == 2
    assert "table-9: take some of table-1, table-2, density" in said.output
    assert "or all" in said.output


def test_all_means_every_item():
    assert [item.name for item in reproduce._chosen(("all",))] == list(ITEMS)
    assert [item.name for item in reproduce._chosen(("ood", "table-1"))] == ["table-1", "ood"], "the order of the paper"


def test_a_failed_run_is_named_and_ends_with_an_error(tmp_path, tiny, monkeypatch):
    runs = planned(FRESH, (0, 1), tmp_path / "out")
    evaluate_runs([trained(run) for run in runs[:-1]], {}, samples=5)
    monkeypatch.setattr(reproduce, "train_missing", lambda *_: {runs[-1].name: "out of memory"})
    done = CliRunner().invoke(cli, ["reproduce", "fresh", "--seeds", "0,1", "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert f"failed: {runs[-1].path}" in done.output
    assert "cannot be compared" in done.output


def test_the_scale_of_the_paper_starts(tmp_path, monkeypatch):
    """The recipes and the network of the paper on a few images: planned, one batch passes, and the engine is given them."""
    generator, file = torch.Generator().manual_seed(0), tmp_path / "cifar.npz"
    x = torch.randint(256, (40, 32, 32, 3), dtype=torch.uint8, generator=generator)
    y = torch.arange(40) % 10
    np.savez(file, x_train=x, y_train=y, x_test=x[:10], y_test=y[:10])
    setup = replace(PAPER_10, changes={"data": str(file), "batch_size": 4})
    scale = replace(PAPER, grids=PAPER.grids | {"table-1": (Grid(setup, ("vi", "ssvi-lrt"), (0.05,)),)})
    monkeypatch.setattr(reproduce, "SCALES", {"paper": scale} | {name: SCALES[name] for name in ("minutes", "hours")})
    given = []

    def stopped(runs, *_):
        given.extend(runs)
        return Outcome(interrupted="SIGINT")

    monkeypatch.setattr(comparison, "train_missing", stopped)
    done = CliRunner().invoke(cli, ["reproduce", "table-1", "--scale", "paper", "--out", str(tmp_path / "out")])
    assert "0 of 6 runs are finished, the same command goes on" in done.output
    assert [run.name for run in given if run.recipe.seed == 0] == ["cifar10-vi-seed0", "cifar10-ssvi-lrt-0.05-seed0"]
    assert {(run.recipe.model, run.recipe.width, run.recipe.epochs) for run in given} == {("resnet18", 0, 200)}
