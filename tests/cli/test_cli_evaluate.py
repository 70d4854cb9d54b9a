"""The commands on finished runs: tables and JSON, kept results, and bad input that changes nothing."""

import json
import shutil

import pytest
from click.testing import CliRunner
from PIL import Image
from small_runs import finished

from ssvi.cli import cli
from ssvi.errors import UserError

METHODS = ("ssvi", "vi", "deterministic")


def call(*words, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(finished(), tmp_path / "run")


def kept(run, name):
    return json.loads((run / name).read_text())


@pytest.mark.parametrize("method", METHODS)
def test_evaluate_prints_what_it_keeps(method, tmp_path):
    run = shutil.copytree(finished(method), tmp_path / "run")
    printed = json.loads(call("evaluate", run, "--samples", 2, "--json"))
    assert printed.items() <= kept(run, "evaluation.json").items()
    table = call("evaluate", run, "--samples", 2)
    assert f"{printed['metrics']['accuracy']['value']:.2%}" in table
    assert "the paper's ECE" in table
    assert "dense VI" in table


def test_ood_takes_several_data_sets_and_keeps_each(run, tmp_path):
    strange = tmp_path / "strange" / "things"
    strange.mkdir(parents=True)
    for i in range(3):
        Image.new("L", (30, 30), 80 * i).save(strange / f"{i}.png")
    printed = json.loads(call("ood", run, "--data", "noise", "--data", strange.parent, "--json"))
    assert set(printed) == {"noise", str(strange.parent)}
    assert kept(run, "ood-strange.json")["outside"] == 3
    assert "AUROC" in call("ood", run, "--data", "noise")


def test_corrupt_by_severity(run, tmp_path):
    printed = json.loads(
        call("corrupt", run, "--images", 10, "--samples", 1, "--no-cache", "--data-dir", tmp_path / "data", "--json")
    )
    assert len(printed["severities"]) == 5
    assert not (tmp_path / "data").exists()
    assert kept(run, "corruption.json")["images"] == 10


@pytest.mark.parametrize("method", METHODS)
def test_inspect_shows_layers_and_agreement(method):
    table = call("inspect", finished(method))
    assert "dead units" in table
    assert ("snr_abs_textbook" in table) == (method != "deterministic")
    printed = json.loads(call("inspect", finished(method), "--rate", 0.01, "--json"))
    assert len(printed["layers"]) == 4
    assert (printed["agreement"] == {}) == (method == "deterministic")


@pytest.mark.parametrize("method", METHODS)
def test_predict_says_or_does_not_know(method, tmp_path):
    run = shutil.copytree(finished(method), tmp_path / "run")
    Image.new("RGB", (40, 40), (120, 0, 0)).save(tmp_path / "red.png")
    assert "don't know (" in call("predict", run, tmp_path / "red.png", "--threshold", 0)
    printed = json.loads(call("predict", run, tmp_path / "red.png", "--json"))
    answer = printed["answers"][0]
    assert answer["known"] == (answer["entropy"] <= printed["threshold"]["entropy"])
    assert (answer["model_uncertainty"] == 0) == (method == "deterministic")


def test_predict_prints_the_keys_of_the_version_before(run, tmp_path):
    printed = json.loads(call("predict", run, _image(tmp_path), "--json"))
    assert set(printed["threshold"]) == {
        "asked", "seed", "entropy", "validation_images", "answered", "accuracy_of_answered", "accuracy",
    }  # fmt: skip
    assert set(printed["answers"][0]) == {
        "file", "class", "known", "probability", "entropy", "data_uncertainty", "model_uncertainty", "probabilities",
    }  # fmt: skip
    given = json.loads(call("predict", run, _image(tmp_path), "--threshold", 0.5, "--json"))
    assert given["threshold"] == {"entropy": 0.5}


def test_a_damaged_threshold_is_chosen_again(run, tmp_path):
    (run / "threshold.json").write_text("[]")
    printed = json.loads(call("predict", run, _image(tmp_path), "--json"))
    assert kept(run, "threshold.json")["entropy"] == printed["threshold"]["entropy"]


def unfinished(run):
    (run / "model.safetensors").unlink()


def damaged(run):
    content = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(content[: len(content) // 2])


def of_another_version(run):
    with (run / "recipe.toml").open("a") as file:
        file.write('flux_capacitor = "on"\n')


def no_run(run):
    (run / "recipe.toml").unlink()


SPOILED = {
    unfinished: "no finished model",
    damaged: "damaged",
    of_another_version: "another version",
    no_run: "not a run folder",
}
COMMANDS = (("evaluate",), ("ood", "--data", "noise"), ("corrupt", "--no-cache"), ("inspect",), ("report",))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("spoil", SPOILED, ids=lambda function: function.__name__)
def test_a_spoiled_run_folder_is_a_clear_error(command, spoil, run):
    (run / "evaluation.json").write_text("kept")
    spoil(run)
    assert_refused((command[0], run, *command[1:]), SPOILED[spoil], run)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ood", "--data", "digits"), "trained on"),
        (("ood", "--data", "nosuch"), "neither a known data set"),
        (("ood", "--data", "noise", "--data", "nosuch"), "neither a known data set"),
        (("corrupt", "--download"), "no published corruptions"),
        (("predict", "nosuch.png"), "does not exist"),
        (("predict", "EMPTY"), "has no images"),
        (("predict", "recipe.toml"), "does not exist"),
        (("report", "--out", "FOREIGN"), "not a report of ssvi"),
    ],
    ids=" ".join,
)
def test_bad_input_is_a_clear_error(words, message, run, tmp_path):
    (tmp_path / "empty").mkdir()
    foreign = tmp_path / "mine.html"
    foreign.write_text("<p>my own page</p>")
    call("predict", run, _image(tmp_path))  # a threshold is there: it is not what must stay absent
    places = {"EMPTY": tmp_path / "empty", "FOREIGN": foreign}
    assert_refused((words[0], run, *(places.get(word, word) for word in words[1:])), message, run)
    assert foreign.read_text() == "<p>my own page</p>"


@pytest.mark.parametrize("command", ["evaluate", "predict", "report"])
def test_fewer_than_one_sample_is_a_clear_error(command, run):
    words = (command, run, "x.png") if command == "predict" else (command, run)
    assert "--samples" in call(*words, "--samples", 0, code=2)


def assert_refused(words, message, run):
    """An error for people, and not a byte of the run folder is different."""
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def _image(folder):
    Image.new("L", (8, 8), 3).save(folder / "some.png")
    return folder / "some.png"
