"""A run folder that cannot be written: results are shown, and a line says that they are not stored."""

import json

import pytest
from click.testing import CliRunner

from ssvi.cli import cli
from ssvi.training import sealed

COMMANDS = {
    "evaluation.json": ("evaluate", "--samples", "2"),
    "ood-noise.json": ("ood", "--data", "noise", "--samples", "2"),
    "corruption.json": ("corrupt", "--images", "3", "--no-cache", "--samples", "1"),
}


@pytest.fixture
def read_only(run, monkeypatch):
    """The folder of a run; tests may run as root, whom no mode of a file stops, so that writing fails in another way."""
    write_whole = sealed.write_whole

    def refuse(target, content):
        if run in target.parents:
            raise PermissionError(13, "Permission denied", str(target))
        write_whole(target, content)

    for module in ("ssvi.training.sealed", "ssvi.training.run_folder", "ssvi.report"):
        monkeypatch.setattr(f"{module}.write_whole", refuse)
    monkeypatch.setattr("os.access", lambda path, mode: path != run)
    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_is_shown_and_a_line_says_that_it_is_not_stored(name, read_only, tmp_path):
    command, *words = COMMANDS[name]
    said = CliRunner().invoke(cli, [command, str(read_only), *words, "--data-dir", str(tmp_path), "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)
    assert f"warning: {read_only / name} is not stored: " in said.stderr
    assert "Permission denied" in said.stderr
    assert not (read_only / name).exists()


def test_the_report_goes_to_the_current_folder(read_only, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    said = CliRunner().invoke(cli, ["report", str(read_only), "--samples", "1"])
    assert said.exit_code == 0, said.output
    assert said.stdout == "report: report-run.html\nmodel card: report-run.md\n"
    assert "evaluation.json is not stored" in said.stderr
    assert (tmp_path / "here" / "report-run.html").is_file()
    assert not (read_only / "report.html").exists()
