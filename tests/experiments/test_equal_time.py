"""The comparison at equal time: its epochs, its plan, its measurement, its table and its curve."""

import json
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from ssvi.comparison import Trial
from ssvi.training.machine import Machine
from ssvi.training.recipe import RecipeError
from ssvi.training.run import finish
from ssvi.training.run_folder import RunError
from ssvi.training.start import start

EXPERIMENTS = Path(__file__).parent.parent.parent / "experiments"
TINY = 'data = "digits"\nmodel = "mlp"\nexamples = 256\nbatch_size = 32\nevery = 4\nthreads = 1\n'


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))


@pytest.fixture(autouse=True)
def same_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def recipe(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return str(file)


def run(*arguments: str):
    return CliRunner().invoke(runpy.run_path(str(EXPERIMENTS / "equal_time.py"))["main"], arguments)


def measured(recipe: str, **seconds_per_step: float):
    """A measurement with 8 steps per epoch; the entrants are named method_width."""
    from equal.entrants import Entrant
    from equal.speed import Measurement, Speed

    names = [(name.rpartition("_"), seconds) for name, seconds in seconds_per_step.items()]
    speeds = tuple(Speed(Entrant(method, int(width)), 8, seconds) for (method, _, width), seconds in names)
    return Measurement(recipe, "2026-01-01", Machine(threads=1), 0.0, 10, 5, speeds)


def test_epochs_are_the_budget_over_the_seconds_of_an_epoch_rounded_and_at_least_one():
    from equal.plan import epochs_within, fits

    budgets = {100.0: 10, 96.0: 10, 94.0: 9, 25.0: 3, 24.0: 2, 6.0: 1, 3.0: 1}
    assert {budget: epochs_within(budget, 10.0) for budget in budgets} == budgets
    assert fits(10.0, 10.0)
    assert not fits(9.0, 10.0), "6 and 9 seconds are less than one epoch"


def test_an_epoch_has_its_share_of_the_updates_of_gamma():
    from equal.entrants import Entrant
    from equal.measuring import Turns
    from equal.speed import Speed

    assert Speed(Entrant("ssvi", 32), 400, 0.5, 2.0, 0.01).seconds_per_epoch == 400 * 0.5 + 4 * 2.0
    turns = Turns(Entrant("ssvi", 32), 400, 0.01, lambda: None, lambda: None)
    speed = turns.speed({"ssvi-w32": 5.0, "ssvi-w32 with an update": 7.0}, steps=10)
    assert (speed.seconds_per_step, speed.seconds_per_update) == (0.5, 2.0)
    assert turns.speed({"ssvi-w32": 5.0, "ssvi-w32 with an update": 4.9}, steps=10).seconds_per_update == 0.0


def test_the_plan_gives_every_entrant_the_time_of_the_first(recipe, tmp_path):
    from equal.plan import plan

    runs = plan(measured(recipe, ssvi_16=0.5, vi_8=2.0, deterministic_64=0.25), 10, [0, 3], 1, tmp_path)
    epochs = {"ssvi-w16": 10, "vi-w8": 3, "deterministic-w64": 20}  # 2.5 epochs of vi are 3
    assert {run.name: run.epochs for run in runs} == {f"{k}-seed{s}": v for s in (0, 3) for k, v in epochs.items()}
    assert [run.name for run in runs][:3] == [f"{name}-seed0" for name in epochs], "the first seed comes first"
    assert [(run.recipe.width, run.density) for run in runs[:3]] == [(16, 0.05), (8, None), (64, None)]


def test_entrants_from_a_list_and_from_a_file(recipe, tmp_path):
    from equal.entrants import DEFAULT, parse_entrants

    assert [entrant.name for entrant in parse_entrants("ssvi:32, vi:16")] == ["ssvi-w32", "vi-w16"]
    assert len(parse_entrants(DEFAULT)) == 10
    file = tmp_path / "entrants.toml"
    file.write_text('[[entrant]]\nmethod = "ssvi"\nwidth = 8\ntag = "denser"\ndensity = 0.5\nlr = 0.3\n')
    (entrant,) = parse_entrants(str(file))
    made = entrant.recipe(recipe, epochs=2)
    assert entrant.name == "ssvi-w8-denser"
    assert (made.width, made.values["density"], made.lr, made.epochs) == (8, 0.5, 0.3, 2)


@pytest.mark.parametrize(("text", "why"), [("ssvi", "METHOD:WIDTH"), ("vi:8,vi:8", "there twice")])
def test_wrong_entrants_are_refused(text, why):
    from equal.entrants import parse_entrants

    with pytest.raises(RecipeError, match=why):
        parse_entrants(text)


def test_an_entrant_cannot_have_epochs_of_its_own(tmp_path):
    from equal.entrants import parse_entrants

    file = tmp_path / "entrants.toml"
    file.write_text('[[entrant]]\nmethod = "vi"\nwidth = 8\nepochs = 3\n')
    with pytest.raises(RecipeError, match="epochs cannot be set"):
        parse_entrants(str(file))


def test_measuring_has_one_update_of_gamma_in_each_turn_of_one_side(recipe, monkeypatch):
    from equal.entrants import parse_entrants
    from equal.measuring import measure
    from ssvi.bench import measure as clock
    from ssvi.inference.subspace import Subspace

    monkeypatch.setattr(clock, "SHORTEST_TURN", 0.0)  # else a turn repeats such short steps as often as the clock says
    updates, step = [], Subspace.step
    monkeypatch.setattr(Subspace, "step", lambda self: updates.append(step(self)) or updates[-1])
    measurement = measure(recipe, parse_entrants("ssvi:8,deterministic:8"), threads=1, steps=3, turns=2, data_dir=None)
    ssvi, deterministic = measurement.speeds
    trial, *measured = [update is not None for update in updates]  # each run tries its first step before it begins
    assert not trial
    assert measured == [False, False, True] * 4  # two turns warm up
    assert (ssvi.updates_per_step, deterministic.updates_per_step) == (0.75 / 4, 0.0)
    assert ssvi.steps_per_epoch == deterministic.steps_per_epoch == 8
    assert ssvi.seconds_per_step > 0


def test_speeds_come_back_from_their_file_and_are_not_replaced_beside_runs(recipe, tmp_path):
    from equal.plan import refuse_new_speeds
    from equal.speed import read_measurement, write_measurement

    out, measurement = tmp_path / "out", measured(recipe, ssvi_16=0.5)
    with pytest.raises(RunError, match="measure --out"):
        read_measurement(out)
    write_measurement(out, measurement)
    assert read_measurement(out) == measurement
    refuse_new_speeds(out)
    (out / "vi-w8-seed0").mkdir()
    (out / "vi-w8-seed0" / "recipe.toml").write_text(TINY)
    with pytest.raises(RunError, match="another --out"):
        refuse_new_speeds(out)


@pytest.fixture
def trained(recipe, tmp_path):
    """A folder with finished runs of the first two of four entrants: 2 epochs of 8 x 15 s, and 4 of 8 x 7.5 s."""
    from equal.plan import plan
    from equal.speed import write_measurement

    out = tmp_path / "out"
    measurement = measured(recipe, ssvi_8=15.0, deterministic_16=7.5, vi_16=15.0, vi_64=60.0)
    write_measurement(out, measurement)
    for planned in plan(measurement, 2, [0], 1, out)[:2]:
        begun = start(planned.recipe, planned.path)
        begun.train()
        finish(begun)
    return out


def test_the_table_of_two_finished_runs(trained, tmp_path):
    page = tmp_path / "page.md"
    result = run("table", "--out", str(trained), "--samples", "2", "--write", str(page), "--json")
    assert result.exit_code == 0, result.output
    entrants = json.loads(result.stdout)["entrants"]
    assert [(e["epochs"], e["minutes"], e["fits"]) for e in entrants[:2]] == [(2, 4.0, True), (4, 4.0, True)]
    accuracy = json.loads((trained / "deterministic-w16-seed0" / "result.json").read_text())["accuracy"]
    assert entrants[1]["summary"]["mean"]["accuracy"] == pytest.approx(accuracy)
    head, _, *rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("|")]
    assert head == ["entrant", "accuracy", "NLL", "ECE (Guo)", "epochs", "minutes", "live weights", "seeds"]
    assert [row[0] for row in rows][:2] == ["SSVI, density 0.05, width 8", "deterministic, width 16"]
    assert rows[1][1] == f"{accuracy:.2%}"
    assert [row[4:6] for row in rows[:3]] == [["2", "4.0"], ["4", "4.0"], ["-", "-"]]
    assert rows[3][4] == "- (one takes 8.0 min: longer than the time)"


def test_a_record_stands_in_for_the_run_folders(trained, tmp_path):
    record, elsewhere = tmp_path / "records" / "tiny.json", tmp_path / "elsewhere"
    words = ("--samples", "2", "--record", str(record), "--json")
    first = run("table", "--out", str(trained), *words)
    assert first.exit_code == 0, first.output
    assert str(tmp_path) not in record.read_text().replace(str(tmp_path / "tiny.toml"), ""), "no paths of a machine"
    again = run("table", "--out", str(elsewhere), *words)
    assert again.exit_code == 0, again.output
    before, after = json.loads(first.stdout)["entrants"], json.loads(again.stdout)["entrants"]
    assert [entrant["summary"] for entrant in after] == [entrant["summary"] for entrant in before]
    curves = [run("curve", "--out", str(out), "--record", str(record), "--json").stdout for out in (trained, elsewhere)]
    assert curves[0] == curves[1]


def test_what_is_on_record_is_not_trained_again(trained, tmp_path):
    record, elsewhere = tmp_path / "tiny.json", tmp_path / "elsewhere"
    assert run("table", "--out", str(trained), "--samples", "2", "--record", str(record)).exit_code == 0
    words = ("train", "--out", str(elsewhere), "--record", str(record), "--only", "ssvi-w8,deterministic-w16")
    result = run(*words, "--epochs", "2", "--seeds", "0")
    assert result.exit_code == 0, result.output
    assert "0 of 0 runs are finished, 2 more are on record" in result.output
    other = run(*words, "--epochs", "3", "--seeds", "0")
    assert other.exit_code == 1
    assert "ssvi-w8-seed0 is on record with epochs=2 (now 3)" in other.output
    samples = run("table", "--out", str(elsewhere), "--samples", "3", "--record", str(record))
    assert samples.exit_code == 1
    assert "is on record with --samples 2: give that number" in samples.output


def test_a_record_keeps_the_data_sets_that_a_later_table_leaves_out(recipe):
    from equal.record import Kept, Record
    from ssvi.comparison import EvaluatedRun, Place
    from ssvi.evaluation.results import Cost

    cost = object.__new__(Cost)  # nobody looks at it

    def kept(accuracy: float, **ood: float) -> Kept:
        place = Place("", "digits", "ssvi", 0.05, 0, "weight")
        return Kept("ssvi-w8", 2, 2, EvaluatedRun(place, 1, 2, {"accuracy": accuracy}, cost, 1.0), ood=ood)

    (run,) = Record(measured(recipe, ssvi_8=1.0), (kept(0.1, noise=0.9),)).with_runs([kept(0.2, svhn=0.8)]).runs
    assert run.run.metrics == {"accuracy": 0.2}
    assert run.ood == {"noise": 0.9, "svhn": 0.8}


def test_a_record_of_other_speeds_or_no_record_is_refused(recipe, tmp_path):
    from equal.record import Record, open_record, write_record
    from equal.speed import write_measurement

    record = tmp_path / "record.json"
    write_record(record, Record(measured(recipe, ssvi_8=1.0)))
    write_measurement(tmp_path / "out", measured(recipe, ssvi_8=2.0))
    with pytest.raises(RunError, match="other speeds"):
        open_record(tmp_path / "out", record)
    record.write_text("{}")
    with pytest.raises(RunError, match="cannot be read"):
        open_record(tmp_path / "out", record)


def test_entrants_are_chosen_on_validation_images(trained):
    result = run("validate", "--out", str(trained), "--json")
    assert result.exit_code == 0, result.output
    ours, plain = json.loads(result.stdout)
    kept = json.loads((trained / "deterministic-w16-seed0" / "validation.json").read_text())
    assert plain["trials"]["0"]["nll"] == kept["nll"]
    assert not (trained / "ssvi-w8-seed0" / "evaluation.json").exists(), "test images have no influence"
    [row] = [line for line in run("validate", "--out", str(trained)).stdout.splitlines() if "deterministic" in line]
    assert f"{kept['nll'] - ours['trials']['0']['nll']:+.4f}" in row


def test_nothing_is_chosen_before_a_run_is_finished(recipe, tmp_path):
    from equal.speed import write_measurement

    write_measurement(tmp_path, measured(recipe, ssvi_8=1.0))
    result = run("validate", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "no finished run: train with" in result.output


def test_differences_from_the_first_entrant_are_paired_by_seed():
    from equal.entrants import Entrant
    from equal.speed import Speed
    from equal.validation import Validated, table

    def validated(width: int, **nlls: float) -> Validated:
        trials = {int(seed[1:]): Trial("ssvi", 0, {}, 0.95, nll, 0.5, 100) for seed, nll in nlls.items()}
        return Validated(Speed(Entrant("ssvi", width), 8, 1.0), 2, trials)

    first, second = validated(8, s0=1.0, s1=2.0), validated(16, s0=0.9, s1=2.1, s2=5.0)
    assert second.differences(first) == pytest.approx([-0.1, 0.1])
    assert table([first, second]).rows[0][3] == "-"
    assert table([first, second]).rows[1][3] == "+0.0000 ± 0.1000"


def test_the_curve_has_the_accuracies_of_the_log_at_the_measured_minutes(trained, tmp_path):
    page = tmp_path / "docs" / "page.md"
    result = run("curve", "--out", str(trained), "--at", "0.5,2,3.9,4", "--write", str(page), "--json")
    assert result.exit_code == 0, result.output
    ours, plain = json.loads(result.stdout)
    log = (trained / "deterministic-w16-seed0" / "metrics.jsonl").read_text().splitlines()
    accuracies = [json.loads(line)["validation"]["accuracy"] for line in log]
    assert plain["points"] == [[1.0 * (i + 1), accuracy] for i, accuracy in enumerate(accuracies)]
    assert [minutes for minutes, _ in ours["points"]] == [2.0, 4.0]
    *_, row = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("|")]
    assert row == ["deterministic-w16", "-", *(f"{accuracies[i]:.2%}" for i in (1, 2, 3)), "1"]
    assert "(figures/out.svg)" in page.read_text()
    drawing = ET.parse(page.parent / "figures" / "out.svg")
    assert len(drawing.findall(".//{http://www.w3.org/2000/svg}polyline")) == 2


def test_only_known_entrants_are_drawn(trained):
    result = run("curve", "--out", str(trained), "--only", "rigl-w8")
    assert result.exit_code == 1
    assert "take some of ssvi-w8" in result.output


def test_some_entrants_may_be_trained_alone(recipe, tmp_path):
    from equal.plan import of_entrants, plan

    runs = plan(measured(recipe, ssvi_8=1.0, vi_8=2.0), 2, [0, 1], 1, tmp_path)
    assert [run.name for run in of_entrants("vi-w8", runs)] == ["vi-w8-seed0", "vi-w8-seed1"]
    assert of_entrants("", runs) == runs
    with pytest.raises(RecipeError, match="--only rigl-w8: take some of ssvi-w8, vi-w8"):
        of_entrants("vi-w8,rigl-w8", runs)


def test_train_trains_what_is_missing_and_refuses_other_epochs(recipe, tmp_path):
    from equal.speed import write_measurement

    out = tmp_path / "out"
    write_measurement(out, measured(recipe, deterministic_8=0.5))
    for _ in range(2):
        result = run("train", "--out", str(out), "--minutes", "0.13", "--seeds", "0")  # 7.8 s: two epochs of 4 s
        assert result.exit_code == 0, result.output
        assert "1 of 1 runs are finished" in result.output
    assert len((out / "deterministic-w8-seed0" / "metrics.jsonl").read_text().splitlines()) == 2
    other = run("train", "--out", str(out), "--epochs", "3", "--seeds", "1")
    assert other.exit_code == 1
    assert "epochs=2 (now 3)" in other.output


ENSEMBLES = (
    '[[entrant]]\nmethod = "ssvi-ensemble"\nwidth = 8\nmembers = 2\n'
    '[[entrant]]\nmethod = "ensemble"\nwidth = 8\nmembers = 2\n'
    '[[entrant]]\nmethod = "ssvi"\nwidth = 8\n'
)


def test_an_epoch_of_an_ensemble_is_one_of_every_member(recipe, tmp_path):
    from equal.entrants import parse_entrants
    from equal.measuring import measure

    file = tmp_path / "entrants.toml"
    file.write_text(ENSEMBLES)
    entrants = parse_entrants(str(file))
    measurement = measure(recipe, entrants, threads=1, steps=1, turns=1, data_dir=None)
    assert [speed.networks for speed in measurement.speeds] == [2, 2, 1]
    (speed, *_) = measurement.speeds
    one = speed.seconds_per_step + speed.updates_per_step * speed.seconds_per_update
    assert speed.seconds_per_epoch == pytest.approx(2 * 8 * one)


def test_ensembles_at_equal_arithmetic(recipe, tmp_path):
    """The FLOPs that are counted before are those that the runs log, up to the updates at the end of a short training."""
    out, file, page = tmp_path / "out", tmp_path / "entrants.toml", tmp_path / "page.md"
    file.write_text(ENSEMBLES)
    for words in (
        ("count", "--out", str(out), "--recipe", recipe, "--entrants", str(file)),
        ("train", "--out", str(out), "--epochs", "4", "--seeds", "0"),
    ):
        result = run(*words)
        assert result.exit_code == 0, result.output
    result = run("table", "--out", str(out), "--samples", "2", "--ood", "noise", "--write", str(page), "--json")
    assert result.exit_code == 0, result.output
    ours, plain, single = json.loads(result.stdout)["entrants"]
    assert (ours["epochs"], single["epochs"]) == (4, 8), "half the members, twice the epochs"
    assert ours["minutes"] == pytest.approx(single["minutes"]) == pytest.approx(ours["budget_minutes"])
    assert 1 <= plain["epochs"] < 4, "dense networks have fewer epochs"
    for entrant in (ours, plain, single):
        (of_run,) = entrant["runs"]
        assert of_run["training_flops"] == pytest.approx(60e9 * entrant["minutes"], rel=0.1)
        assert 0 <= entrant["ood"]["noise"]["mean"] <= 1
    head, _, *rows = [line.strip("| ").split(" | ") for line in page.read_text().splitlines() if line.startswith("|")]
    assert head[4:7] == ["AUROC noise", "epochs", "TFLOP"]
    assert [row[0] for row in rows] == [
        "SSVI ensemble, density 0.05, width 8",
        "ensemble, width 8",
        "SSVI, density 0.05, width 8",
    ]
    assert "FLOPs of the training, counted by `ssvi.flops`" in page.read_text()
    refused = run("train", "--out", str(out), "--minutes", "3")
    assert refused.exit_code == 1
    assert "--minutes needs minutes, and this folder has counted FLOPs" in refused.output


def test_without_the_reference_the_time_is_that_of_the_next_entrant(recipe, tmp_path):
    from equal.plan import budget_of
    from equal.record import Kept
    from ssvi.comparison import EvaluatedRun, Place
    from ssvi.evaluation.results import Cost

    measurement = measured(recipe, ssvi_8=10.0, deterministic_16=4.0)
    place = Place("", "digits", "deterministic", 1.0, 0, "-")
    kept = Kept("deterministic-w16", 5, 1, EvaluatedRun(place, 1, 1, {}, object.__new__(Cost), 1.0))
    speed = measurement.speeds[1]
    assert budget_of(measurement, tmp_path, [kept]) == 5 * speed.seconds_per_epoch
    with pytest.raises(RunError, match="has no runs: train with"):
        budget_of(measurement, tmp_path, [])
