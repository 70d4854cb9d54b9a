"""Completion: commands, flags, recipes, methods, data sets, run folders, choices; without torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from small_runs import finished

from ssvi import methods
from ssvi.cli import COMMANDS, cli, completion, load_command
from ssvi.data import NAMES
from ssvi.training import recipe_files


def completed(*words: str) -> list[str]:
    """What may stand in place of the last word."""
    return [item.value for item in items(*words) if item.type == "plain"]


def items(*words: str):
    return ShellComplete(cli, {}, "ssvi", "_SSVI_COMPLETE").get_completions(list(words[:-1]), words[-1])


def test_the_outlines_are_those_of_the_commands():
    now = completion.outlines(map(load_command, COMMANDS))
    assert completion.OUTLINES.read_text() == now, "the flags have changed: run `make outlines`"


def test_names_of_recipes_methods_and_data():
    assert completed("train", "") == list(recipe_files.names())
    assert completed("train", "cifar100") == ["cifar100-paper", "cifar100"]
    assert completed("train", "--method", "") == list(methods.NAMES)
    assert completed("train", "--method", "snr") == ["snr-prune", "snr-finetune"]
    assert completed("train", "cifar10", "--lr", "0.1", "--data", "ci") == ["cifar10", "cifar100"]
    assert completed("ood", "run", "--data", "") == [*NAMES, "noise"]


def test_choices_and_lists():
    assert completed("train", "--allocation", "") == ["uniform", "erk"]
    assert completed("train", "--sigma-map", "s") == ["softplus"]
    assert completed("compare", "digits", "--methods", "ssvi,snr-p") == ["ssvi,snr-prune"]


def test_flags():
    assert completed("train", "--checkpoint") == ["--checkpoint-steps"]
    assert completed("doctor", "--") == ["--bundle", "--out", "--json", "--debug", "--help"]
    assert completed("train", "digits", "--no-per") == ["--no-per-epoch"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two runs, one of them in `runs`, and something else."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(finished(), tmp_path / "runs" / "mine")
    shutil.copytree(finished(), tmp_path / "alone")
    (tmp_path / "runs" / "other").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "before", [("evaluate",), ("report",), ("report", "alone"), ("train", "--resume"), ("doctor",)]
)
def test_run_folders(before, folder):
    assert completed(*before, "") == ["alone", "runs/mine"]
    assert completed(*before, "runs/") == ["runs/mine"]
    assert completed(*before, str(folder / "ru")) == [str(folder / "runs" / "mine")]


def test_where_no_name_fits_the_shell_completes_files(folder):
    assert [item.type for item in items("train", "my-own")] == ["file"]
    assert [item.type for item in items("evaluate", "nothing")] == ["dir"]
    assert [item.type for item in items("bench", "--write", "")] == ["file"]


@pytest.mark.parametrize("words", ["ssvi train ", "ssvi train --method ", "ssvi ood x --data ", "ssvi train --den"])
def test_completion_loads_no_torch(words):
    program = (
        "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
        "sys.argv = ['ssvi']; from ssvi.__main__ import main; main()"
    )
    ask = {"_SSVI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | ask, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "False\n")
    assert "plain," in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_the_page_gives_a_script(shell, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "install.md").read_text()
    assert "_SSVI_COMPLETE=bash_source ssvi" in page
    assert "complete" in source(shell, tmp_path)


def source(shell: str, folder: Path) -> str:
    """What `_SSVI_COMPLETE=SHELL_source ssvi` prints."""
    environment = program(folder) | {"_SSVI_COMPLETE": f"{shell}_source"}
    return subprocess.run(["ssvi"], env=environment, capture_output=True, text=True, check=True).stdout


def program(folder: Path) -> dict[str, str]:
    """An environment in which `ssvi` is the program of this source."""
    script = folder / "bin" / "ssvi"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!{sys.executable}\nfrom ssvi.__main__ import main\nmain()\n")
    script.chmod(0o755)
    path = os.pathsep.join([str(Path(completion.__file__).parents[2]), *sys.path])
    return os.environ | {"PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(tmp_path):
    (tmp_path / "complete.sh").write_text(source("bash", tmp_path))
    typed = "COMP_WORDS=(ssvi train --method ri); COMP_CWORD=3; _ssvi_completion ssvi; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        ["bash", "-c", f"source complete.sh; {typed}"],
        env=program(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "rigl\n", done.stderr
