"""The commands on finished runs refuse bad run folders and bad arguments, and then not a byte of the run has changed."""

import pytest
from click.testing import CliRunner
from command_line import run_command
from PIL import Image

from ssvi.cli import cli
from ssvi.errors import UserError


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


def assert_refused(words, message, run):
    """An error for people, and not a byte of the run folder is different."""
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    result = CliRunner().invoke(cli, [str(word) for word in words])
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


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
    Image.new("L", (8, 8), 3).save(tmp_path / "some.png")
    run_command("predict", run, tmp_path / "some.png")  # stores a threshold, so that the refused command need not
    places = {"EMPTY": tmp_path / "empty", "FOREIGN": foreign}
    assert_refused((words[0], run, *(places.get(word, word) for word in words[1:])), message, run)
    assert foreign.read_text() == "<p>my own page</p>"


@pytest.mark.parametrize("command", ["evaluate", "predict", "report"])
def test_fewer_than_one_sample_is_a_clear_error(command, run):
    words = (command, run, "x.png") if command == "predict" else (command, run)
    assert "--samples" in run_command(*words, "--samples", 0, code=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("report", "--out", "x.png"), "the page is HTML, so give a name that ends in .html"),
        (("predict", "x.png", "--threshold", "nan"), "'nan' is not a number"),
        (("predict", "x.png", "--threshold", "-1"), "-1.0 is not in the range x>=0"),
        (("predict", "x.png", "--max-error", "nan"), "'nan' is not a number"),
        (("evaluate", "--level", "nan"), "'nan' is not a number"),
        (("serve", "--threshold", "nan"), "'nan' is not a number"),
        (("inspect", "--rate", "nan"), "'nan' is not a number"),
    ],
    ids=" ".join,
)
def test_values_that_no_flag_means_are_refused(words, message, run):
    assert message in run_command(words[0], run, *words[1:], code=2)
