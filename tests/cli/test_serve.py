"""`ssvi serve`: its mistakes are one line, before anything is served."""

import importlib.util
import shutil

import pytest
from command_line import run_command

from ssvi.cli import serve as command
from ssvi.errors import UserError
from ssvi.serving import ServingError, start


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--max-batch", "0"), "max_batch=0 must be at least 1"),
        (("--max-bytes", "many"), "'many' is not a size"),
        (("--timeout", "0"), "timeout=0 are seconds"),
        (("--device", "nowhere"), "device='nowhere' cannot be used here"),
    ],
)
def test_settings_that_cannot_be(run, words, line):
    with pytest.raises(UserError, match=line):
        run_command("serve", run, *words)


def test_a_run_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="nothing"):
        run_command("serve", tmp_path / "nothing")


def test_without_the_extra_the_line_says_what_to_install(run, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(start, "find_spec", lambda name: None if name == "fastapi" else find(name))
    with pytest.raises(ServingError, match=r"needs fastapi: pip install 'ssvi\[serve\]'"):
        run_command("serve", run)


def test_the_settings_reach_the_server(run, monkeypatch):
    served = []
    monkeypatch.setattr(command, "serve", lambda *arguments: served.append(arguments))
    shutil.copytree(run, run.parent / "mine")
    run_command(
        "serve", run.parent / "mine", "--host", "::1", "--port", "81", "--samples", "2", "--max-batch", "7", "--max-bytes",
        "2kB", "--max-wait-ms", "20", "--timeout", "3", "--max-waiting", "9", "--threshold", "0.5", "--threads", "1",
    )  # fmt: skip
    model, limits, host, port, _ = served[0]
    assert (host, port, model.facts.name, model.facts.samples) == ("::1", 81, "mine", 2)
    assert (limits.max_batch, limits.max_bytes, limits.max_wait) == (7, 2000, 0.02)
    assert (limits.timeout, limits.max_waiting) == (3, 9)
