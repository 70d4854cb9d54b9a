"""The command line, as a user types it."""

import json

import pytest
from click.testing import CliRunner

from ssvi import cli
from ssvi.training import recipe as config
from ssvi.training.recipe import FIELDS

FAST = ["--epochs", "1", "--width", "4", "--threads", "1"]


def call(*args: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli.cli, list(args), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_train_json_ends_with_the_result(tmp_path):
    lines = [json.loads(line) for line in call("train", *FAST, "--json", "--out", str(tmp_path / "r")).splitlines()]
    assert lines[0]["epoch"] == 0
    assert lines[-1]["run"] == str(tmp_path / "r")
    assert 0 <= lines[-1]["result"]["accuracy"] <= 1


def test_train_for_people_and_resume_of_a_finished_run(tmp_path):
    said = call("train", "digits", *FAST, "--out", str(tmp_path / "r"))
    assert "epoch 1: loss" in said
    assert "marginal_calibration_error" in said
    assert "accuracy" in call("train", "--resume", str(tmp_path / "r"))


def test_tensorboard_gets_the_epochs(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    call("train", *FAST, "--tensorboard", "--out", str(tmp_path / "r"))
    events = EventAccumulator(str(tmp_path / "r" / "tensorboard")).Reload()
    assert {"loss", "nll", "kl", "validation/accuracy", "sigma_drift/4"} <= set(events.Tags()["scalars"])


def test_every_field_is_a_flag_with_help():
    said = call("train", "--help")
    assert all("--" + name.replace("_", "-") in said for name in FIELDS)


def test_recipes_and_doctor():
    assert set(json.loads(call("recipes", "--json"))["recipes"]) == set(config.names())
    assert "cifar10-cpu" in call("recipes")
    assert json.loads(call("doctor", "--json"))["torch"]
    assert "native kernels" in call("doctor")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "digit"], "did you mean 'digits'"),
        (["train", "--density", "7"], "density=7.0 must be in"),
        (["train", "--model", "vgg"], "model='vgg' is unknown"),
        (["train", "--model", "nowhere:net"], "cannot be imported"),
        (["train", "--data", "imagenet"], "imagenet"),
        (["train", "--resume", "nowhere"], "not a run folder"),
        (["train", "--resume", "nowhere", "--lr", "1"], "leave out --lr"),
        (["train", "--removal", "size"], "removal='size' is not a criterion"),
    ],
)
def test_mistakes_are_a_sentence_and_not_a_traceback(args, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["ssvi", *args])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_ones_own_network(tmp_path, monkeypatch):
    (tmp_path / "mynets.py").write_text(
        "from torch import nn\ndef tiny(classes, channels, size):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    said = call("train", "--model", "mynets:tiny", "--keep-dense", "", *FAST, "--out", str(tmp_path / "r"))
    assert "accuracy" in said
