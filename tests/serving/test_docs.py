"""The commands of docs/serving.md work, and what the page says of the answers is so."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from live_server import live_server
from small_tables import finished_table

from ssvi.evaluation import FinishedRun, TableRun
from ssvi.serving import Limits, RowModel

PAGE = (Path(__file__).parent.parent.parent / "docs" / "serving.md").read_text()


def test_the_commands_of_the_page(model, files, tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    (tmp_path / "photo.png").write_bytes(files[0])
    commands = re.search(r"```sh\n(.*?)```", PAGE, re.S).group(1).splitlines()
    with live_server(model) as address:
        printed = [answer(command.replace("http://127.0.0.1:8000", address), tmp_path) for command in commands]
    form, body, health = printed
    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.S).group(1))
    assert list(form) == list(shown), "the keys of the page, in its order"
    assert form == body
    words = PAGE.split("`/health` has ")[1].split("\n\n")[0]
    assert re.findall(r"`(\w+)`", words) == list(health)


def test_the_commands_for_rows(tmp_path):
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    commands = re.findall(r"```sh\n(.*?)```", PAGE, re.S)[1].splitlines()
    run = TableRun(FinishedRun(shutil.copytree(finished_table(), tmp_path / "run")))
    with live_server(RowModel(run, 2)) as address:
        one, several = (answer(command.replace("http://127.0.0.1:8000", address), tmp_path) for command in commands)
    named = PAGE.split("The answer of `/predict/row`")[1].split("of a class")[0]
    assert set(re.findall(r"`(\w+)`", named)) <= set(one)
    assert [set(each) for each in several["answers"]] == [set(one)] * 2


def answer(command: str, folder: Path) -> dict:
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_limits_of_the_page_are_the_defaults():
    defaults = Limits()
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
    said = {row[1]: row[3] for row in rows[1:]}
    assert said["bytes of a body"] == f"{defaults.max_bytes // 10**6}MB"
    assert said["seconds of a request"] == f"{defaults.timeout:g}"
    assert said["requests at the same time"] == str(defaults.max_waiting)
    assert said["bytes of all bodies together"] == f"{defaults.max_held_bytes // defaults.max_bytes} times `--max-bytes"
    assert said["pixels of an image"] == f"{defaults.max_pixels // 10**6} million"


def test_the_example_of_an_answer_adds_up():
    shown = json.loads(re.search(r"```json\n(.*?)```", PAGE, re.S).group(1))
    assert sum(shown["probabilities"].values()) == pytest.approx(1)
    assert shown["entropy"] == pytest.approx(shown["data_uncertainty"] + shown["model_uncertainty"])
    assert shown["known"] == (shown["entropy"] <= shown["threshold"])
