"""The help of commands with recipes: groups, the settings of the method asked for, the values of the recipe, 80 columns."""

import re
import subprocess
import sys
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from ssvi import methods
from ssvi.cli import cli
from ssvi.cli.help import GROUPS
from ssvi.methods.groups import Descent
from ssvi.methods.settings import help_group, setting
from ssvi.training import recipe_files
from ssvi.training.recipe import COMMON, fields_of


def shown(*words: str) -> str:
    """The help at 80 columns."""
    result = CliRunner().invoke(cli, [*words, "--help"], terminal_width=80, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def sections(text: str) -> dict[str, str]:
    """The groups of options by their titles."""
    parts = re.split(r"^(\S[^\n]*):\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def flags(text: str) -> set[str]:
    """The settings that stand at the beginnings of lines."""
    return {name.replace("-", "_") for name in re.findall(r"^  --([a-z0-9-]+)", text, re.M)}


def test_the_groups_of_the_default_method():
    groups = sections(shown("train"))
    assert list(groups) == ["Data", "Network", "Posterior", "Updates of gamma", "Optimiser", "Run"]
    assert {"data", "validation", "size", "data_dir"} <= flags(groups["Data"])
    assert {"model", "density", "sparsity", "allocation"} <= flags(groups["Network"])
    assert {"prior_sigma", "samples"} <= flags(groups["Posterior"])
    assert {"every", "rate", "removal", "addition"} <= flags(groups["Updates of gamma"])
    assert {"lr", "epochs", "b2", "h0"} <= flags(groups["Optimiser"])
    assert {"out", "resume", "method", "seed", "debug"} <= flags(groups["Run"])


@pytest.mark.parametrize("method", methods.NAMES)
def test_only_the_settings_of_the_method_are_shown(method):
    text = shown("train", "--method", method)
    own = fields_of(method)
    of_command = {"out", "resume", "data_dir", "json", "tensorboard", "mlflow", "wandb", "debug"}
    density = {"sparsity"} if "density" in own else set()
    assert flags(text) == set(own) | of_command | density
    assert f"Values in brackets are those of the recipe digits for {method}." in text
    for line in text.splitlines():
        assert len(line) <= 80, line


def test_what_a_method_declares_itself_stands_apart():
    assert flags(sections(shown("train", "--method", "mbnn"))["Of mbnn alone"]) == {"lam", "every", "prior_sigma"}

    @dataclass(frozen=True)
    class Settings(Descent):
        mine: float = setting(1.0, "of a method of the user")

    assert help_group(Settings, "mine") is None
    assert help_group(Settings, "momentum") == "Optimiser"


def test_every_common_setting_has_one_group():
    places = [name for names in GROUPS.values() for name in names]
    assert len(places) == len(set(places))
    assert set(places) - set(COMMON) == {"data_dir", "sparsity"}
    assert set(COMMON) <= set(places)


def value_in_brackets(text: str, flag: str) -> str:
    entry = re.search(rf"^  --{flag} .*?(?=^  --|^\S|\Z)", text, re.M | re.S).group()
    return re.sub(r"\s+", " ", entry).rpartition("[")[2].rstrip(" ]")


@pytest.mark.parametrize("words", [("cifar10",), ("cifar10-paper",), ("digits", "--method", "rigl")])
@pytest.mark.parametrize(
    "flag", ["epochs", "batch-size", "data", "every", "lr", "augment", "weight-decay", "per-epoch"]
)
def test_the_values_are_those_of_the_recipe(words, flag):
    recipe = recipe_files.load(words[0], words[-1] if len(words) > 1 else None)
    name = flag.replace("-", "_")
    if name not in recipe.values:
        return
    expected = recipe.values[name]
    expected = {True: "on", False: "off"}[expected] if isinstance(expected, bool) else str(expected)
    assert value_in_brackets(shown("train", *words), flag) == expected


def test_the_help_may_be_asked_for_before_the_rest_is_typed():
    def run(*words: str) -> str:
        return CliRunner().invoke(cli, words, catch_exceptions=False).output

    assert run("train", "--help", "cifar10", "--method", "rigl") == run("train", "cifar10", "--method=rigl", "--help")


def test_choices_are_named():
    text = shown("train")
    assert "--allocation [uniform|erk]" in text
    removal = re.sub(r"\s+", " ", sections(text)["Updates of gamma"])
    assert "--removal TEXT removal criterion: one of abs_mu, snr, mean_abs" in removal
    assert "--prior-sigma [fan-in|NUMBER]" in text
    assert "--prior-sigma FLOAT" in shown("train", "--method", "mbnn")


@pytest.mark.parametrize("command", ["compare", "tune"])
def test_compare_and_tune_show_the_settings_of_their_methods(command):
    text = shown(command, "digits", "--methods", "rigl,vd")
    own = set(fields_of("rigl")) | set(fields_of("vd"))
    assert flags(text) & set(fields_of("ssvi-lrt")) <= own
    assert {"threshold", "addition"} <= flags(text)
    assert f"{command} RECIPE --methods NAME --help" in re.sub(r"\s+", " ", text)


def test_a_recipe_that_does_not_exist_does_not_hide_the_help():
    text = re.sub(r"\s+", " ", shown("train", "digit"))
    assert "those of the recipe digits" in text
    assert "Not shown: recipe 'digit' does not exist: did you mean 'digits'?." in text


def test_the_real_program_shows_it():
    command = [sys.executable, "-m", "ssvi", "train", "cifar10", "--help"]
    assert "Updates of gamma:" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
