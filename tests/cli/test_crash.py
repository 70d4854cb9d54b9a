"""A crash leaves a file, and `ssvi doctor --bundle` makes an archive; neither holds anything private."""

import getpass
import json
import platform
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import ssvi
from ssvi.cli import cli, crash, installation, main
from ssvi.cli.private import Scrubber, paths_among, scrubber

USER, HOST = "annegret", "rechner17"


@pytest.fixture
def hers(tmp_path, monkeypatch):
    """The home of a user with a name, on a machine with a name, in a folder of hers."""
    home = tmp_path / "home" / USER
    (home / "secret project").mkdir(parents=True)
    for key, value in {"HOME": home, "USER": USER, "LOGNAME": USER, "USERPROFILE": home}.items():
        monkeypatch.setenv(key, str(value))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".state"))
    monkeypatch.setattr(platform, "node", lambda: f"{HOST}.example.org")
    monkeypatch.chdir(home / "secret project")
    assert getpass.getuser() == USER
    return home


def crashed(monkeypatch, capsys, message: str, *words: str) -> Path:
    """The crash file of a command with a bug."""

    def broken() -> None:
        raise KeyError(message)

    monkeypatch.setattr(installation, "findings", broken)
    monkeypatch.setattr("sys.argv", ["ssvi", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 70
    said = capsys.readouterr().err
    monkeypatch.undo()
    return Path(said.split("with ")[1].split(" or the archive")[0])


def test_a_crash_file_tells_what_happened_and_nothing_private(hers, monkeypatch, capsys):
    message = f"of {USER} on {HOST}: {hers}/secret project/patients.csv, and /mnt/clients/a.npz"
    file = crashed(monkeypatch, capsys, message, "doctor", "--bundle", f"--out={hers}/secret project/x.zip")
    assert file.parent == hers / ".state" / "ssvi" / "crashes"
    assert file.name.startswith("ssvi-crash-20")
    text = file.read_text()
    assert f"ssvi {ssvi.__version__}, torch " in text
    assert "command: ssvi doctor --bundle" in text
    assert "KeyError: " in text
    assert "cli/installation.py" in text
    assert "in doctor_command" in text
    for private in (str(hers), USER, HOST, "secret", "patients", "clients", "x.zip"):
        assert private not in text


def test_several_crashes_of_a_second_have_a_file_each_and_old_ones_go(hers):
    for i in range(crash.KEPT + 3):
        assert f"ValueError: number {i}\n" in crash.write_crash(ValueError(f"number {i}")).read_text()
    assert len(list(crash.crash_folder().iterdir())) == crash.KEPT
    newest = [path.read_text().split("number ")[1].strip() for path in crash.newest_crashes(3)]
    assert newest == [str(crash.KEPT + i) for i in (2, 1, 0)]


def test_a_folder_that_cannot_be_written_is_not_the_end(hers, monkeypatch, tmp_path):
    (hers / ".state").write_text("a file, where the folder should be")
    monkeypatch.setattr(crash.tempfile, "gettempdir", lambda: str(tmp_path))
    assert crash.write_crash(ValueError("x")).parent == tmp_path
    monkeypatch.setattr(crash.tempfile, "gettempdir", lambda: str(hers / ".state"))
    line = crash.report_bug(ValueError("x\ny"))
    assert line.startswith("this is a bug of ssvi: ValueError: x. No crash file could be written")
    assert len(line.splitlines()) == 1


@pytest.fixture
def private_run(run, hers):
    """A run folder whose files name paths of hers."""
    folder = hers / "secret project" / "runs" / "diagnosis"
    folder.parent.mkdir()
    run.rename(folder)
    recipe = (folder / "recipe.toml").read_text().replace('data = "digits"', 'data = "../patients of 2026.csv"')
    (folder / "recipe.toml").write_text(recipe)
    machine = json.loads((folder / "machine.json").read_text())
    machine["command"] = [f"{hers}/bin/ssvi", "train", "scans", "--out=runs/diagnosis", "--data-dir", "/mnt/ward7/x"]
    (hers / "secret project" / "scans").mkdir()
    (folder / "machine.json").write_text(json.dumps(machine))
    return folder


def archive_of(*words: str) -> Path:
    result = CliRunner().invoke(cli, ["doctor", "--bundle", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return Path(result.output.removeprefix("bundle: ").strip())


def test_the_bundle_holds_what_helps_and_nothing_private(private_run, hers, monkeypatch):
    crash.write_crash(ValueError(f"{private_run}/model.safetensors"))
    archive = archive_of("runs/diagnosis")
    with zipfile.ZipFile(archive) as content:
        texts = {name: content.read(name).decode() for name in content.namelist()}
    assert {"doctor.json", "run/recipe.toml", "run/machine.json", "run/metrics.jsonl"} <= set(texts)
    assert any(name.startswith("crashes/ssvi-crash-") for name in texts)
    assert len(texts) == 5, "no image, no weight"
    assert json.loads(texts["doctor.json"])["ssvi"] == ssvi.__version__
    assert json.loads(texts["run/machine.json"])["command"][1] == "train"
    assert 'method = "ssvi"' in texts["run/recipe.toml"]
    everything = archive.read_bytes().decode("latin-1") + "".join(texts.values())
    for private in (str(hers), USER, HOST, "secret", "diagnosis", "patients", "scans", "ward7"):
        assert private not in everything, private


def test_a_bundle_without_a_run_and_its_mistakes(hers, tmp_path):
    assert zipfile.ZipFile(archive_of("--out", "mine.zip")).namelist() == ["doctor.json"]
    for words, message in {
        ("doctor", "--bundle", "--out", "mine.zip"): "mine.zip exists",
        ("doctor", "--bundle", "nowhere"): "nowhere is not a run folder",
        ("doctor", "--bundle", "--out", "nowhere/x.zip"): "cannot be written",
        ("doctor", "--out", "x.zip"): "RUN and --out are for --bundle",
    }.items():
        result = CliRunner().invoke(cli, words)
        assert message in f"{result.output}{result.exception}"
        assert result.exit_code != 0


def test_words_that_are_paths(hers):
    (hers / "secret project" / "scans").mkdir()
    argv = ["/bin/ssvi", "--debug", "train", "scans", "homes.csv", "--lr", "0.1", "--out=a/b", "--method", "rigl", "-h"]
    assert paths_among(argv) == ["/bin/ssvi", "scans", "homes.csv", "a/b"]


def test_the_longest_path_first_and_names_as_whole_words():
    clean = Scrubber({"/home/al": "<home>", "/home/al/x": "<cwd>"}, {"al": "<user>"})
    assert clean("/home/al/x/f.py /home/al/y signal AL's C:\\Users\\al 1/2 a/b") == (
        "<cwd> <home> signal <user>'s <path> 1/2 a/b"
    )
    assert clean('File "/home/al/x/a b/c.py", "/home/al", or /home/al.') == 'File "<cwd>", "<home>", or <home>'
    assert scrubber(["train"])("training, train") == "training, <path>"
