"""Mistakes of the user are one line, and bugs are never hidden."""

import errno

import pytest

from ssvi.cli import installation, main


@pytest.fixture
def stopped(monkeypatch, tmp_path, capsys):
    """Types a command that ends with an error, in an empty folder; returns the exit code and what it wrote to stderr."""

    def typed(*words: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["ssvi", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    return typed


IDS = {"ids": lambda value: " ".join(value[1:]) if isinstance(value, list) else ""}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "digit"], "did you mean 'digits'"),
        (["train", "--density", "7"], "density=7.0 must be in"),
        (["train", "--data", "imagenet"], "imagenet"),
        (["train", "--resume", "nowhere"], "not a run folder"),
        (["train", "--resume", "nowhere", "--lr", "1"], "leave out --lr"),
    ],
    **IDS,
)
def test_mistakes_are_a_sentence_and_not_a_traceback(words, message, stopped):
    assert_one_line(message, *stopped(*words))


@pytest.mark.filterwarnings("ignore:layer .* mu has become")  # a line above the error
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--model", "vgg"], "model='vgg' must be one of"),
        (["train", "--model", "nowhere:net"], "cannot be imported"),
        (["train", "--removal", "size"], "removal='size' must be one of"),
        (["train", "--addition", "size"], "addition='size' must be one of"),
        (["train", "--allocation", "size"], "allocation='size' must be one of"),
        (["train", "--method", "ssvi-lrt", "--sigma-map", "relu"], "sigma_map='relu' must be one of"),
        (["train", "--mu-init", "-1"], "mu_init=-1.0 must be"),
        (["train", "--method", "ssvi-lrt", "--fresh-sigma", "0"], "fresh_sigma=0.0 must be"),
        (["train", "--mc-steps", "50"], "mc_steps=50 must be between 1 and every=20"),
        (["train", "--addition", "snr"], "addition='snr' needs mc_steps of 2 or more"),
        (["train", "--keep-dense", "conv7"], "keep_dense='conv7' matches no layer"),
        (["train", "--density", "1e-9"], "raise density"),
        (["train", "--momentum", "-1"], "momentum"),
        (["train", "--seed", "-1"], "seed=-1 must be"),
        (["train", "--lr", "1e9"], "lower"),
        (["train", "--method", "mbnn", "--lr", "1e9"], "lower"),
    ],
    **IDS,
)
def test_settings_that_the_library_refuses_are_a_sentence_too(words, message, stopped):
    assert_one_line(message, *stopped(*words))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "cannot be read as text"),
        (b"method = 3", "method='3' must be one of"),
        (b'[tool.poetry]\nname = "x"', "unknown table [tool]"),
    ],
)
def test_a_file_that_is_no_recipe_is_a_sentence(content, message, stopped, tmp_path):
    (tmp_path / "mine.toml").write_bytes(content)
    assert_one_line(message, *stopped("train", "mine.toml"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--method", "vi", "--density", ".5"], "method 'vi' does not use 'density': leave it out"),
        (["compare", "digits", "--methods", "rigl", "--h0", ".3"], "none of rigl uses --h0"),
        (["tune", "digits", "--methods", "rigl", "--validation", "0"], "validation=0.0: tuning compares"),
    ],
    **IDS,
)
def test_what_would_be_ignored_is_refused(words, message, stopped, tmp_path):
    assert_one_line(message, *stopped(*words))
    assert list(tmp_path.iterdir()) == [], "nothing was made"


def assert_one_line(message: str, code: int, said: str) -> None:
    """An error for the user: its line, the code 1, and no traceback."""
    assert code == 1
    assert said.startswith("error: ")
    assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize("words", ["--debug train digit", "train digit --debug", "train --debug digit"])
def test_debug_shows_the_traceback_of_a_mistake(words, stopped):
    code, said = stopped(*words.split())
    assert code == 1
    assert said.startswith("Traceback")
    assert said.splitlines()[-1] == "error: recipe 'digit' does not exist: did you mean 'digits'?"


def test_a_mistake_in_the_words_of_a_command_is_code_2(stopped):
    code, said = stopped("trian")
    assert code == 2
    assert "Did you mean 'train'?" in said


@pytest.mark.parametrize("kind", [ValueError, FloatingPointError, RuntimeError, OSError])
def test_a_bug_is_not_taken_for_a_mistake(kind, monkeypatch, stopped, tmp_path):
    def broken() -> None:
        raise kind("a bug of ours")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(installation, "findings", broken)
    code, said = stopped("doctor")
    assert code == 70
    assert said.startswith(f"error: this is a bug of ssvi: {kind.__name__}: a bug of ours. Please report it, with ")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x/y.json"), "error: x/y.json: No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied"), "error: Permission denied"),
        (
            IsADirectoryError(errno.EISDIR, "Is a directory", "run/metrics.jsonl"),
            "error: run/metrics.jsonl: Is a directory",
        ),
        (MemoryError(), "error: there is not enough memory: lower"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you"),
            "error: there is not enough mem",
        ),
    ],
)
def test_what_the_operating_system_refuses_is_no_bug(error, line, monkeypatch, stopped):
    def refused() -> None:
        raise error

    monkeypatch.setattr(installation, "findings", refused)
    code, said = stopped("doctor")
    assert code == 1
    assert said.startswith(line)
    assert len(said.splitlines()) == 1


def test_an_interruption_is_code_130(monkeypatch, stopped):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(installation, "findings", interrupted)
    assert stopped("doctor") == (130, "SIGINT: stopped; the same command starts again\n")
