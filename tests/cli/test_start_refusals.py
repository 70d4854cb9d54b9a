"""`ssvi train`, `compare` and `tune` refuse what cannot be trained in one line, and then the disk is as it was."""

import json

import numpy as np
import pytest

from ssvi.cli import main
from ssvi.training import tensorboard
from ssvi.training.recipe import RecipeError

SMALL = ("--width", "2", "--epochs", "1", "--threads", "1")
IMAGES = np.arange(60 * 64).reshape(60, 8, 8).astype(np.uint8)


@pytest.fixture
def typed(monkeypatch, tmp_path, capsys):
    """Types a command in a folder of its own; returns the exit code and all that was said."""

    def type_in(*words: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["ssvi", *words])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        output = capsys.readouterr()
        return code, output.out + output.err

    return type_in


@pytest.fixture
def files(tmp_path):
    np.savez(tmp_path / "huge.npz", x=IMAGES, y=np.array([0, 10**9] * 30))
    np.savez(tmp_path / "one.npz", x=IMAGES, y=np.zeros(60, int))
    np.savez(tmp_path / "empty.npz", x=np.zeros((60, 0, 0), np.uint8), y=np.arange(60) % 2)
    with open(tmp_path / "array.npz", "wb") as file:
        np.save(file, IMAGES)
    (tmp_path / "text.npz").write_text("1,2,3\n")
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "net.py").write_text("class Net: ...\n")
    return sorted(path.name for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--threads", "100000"], "threads=100000 must be 0 or more, and at most 1024"),
        (["train", "--width", "1000000"], "width=1000000: model='lenet' would have"),
        (["train", "--width", "9" * 30], "width="),
        (["train", "--size", "8192"], "need 193.0 GB"),
        (["train", "--data", "huge.npz"], "a label of 1000000000"),
        (["train", "--data", "one.npz"], "examples of 1 class"),
        (["train", "--data", "empty.npz"], "have no pixels"),
        (["train", "--data", "array.npz"], "holds one array"),
        (["train", "array.npz"], "holds one array"),
        (["train", "--data", "text.npz"], "it is another kind of file"),
        (["train", "--data", "x" * 300], "is neither a known data set"),
        (["train", "--data", "~nobody-of-that-name/x.npz"], "is neither a known data set"),
        (["train", "x" * 300], "does not exist"),
        (["train", "--out", "x" * 300], "cannot be used: File name too long. Choose another folder with --out"),
        (["train", "empty.toml"], "empty.toml is empty"),
        (["train", "--model", "./net.py:Net"], "without folders and without .py"),
        (["train", "--method", "net"], "is not a method"),
        (["train", "--method", "..net"], "method='..net' must be one of"),
        (["train", "--method", "vd", "--keep-dense", "conv7"], "keep_dense='conv7' matches no"),
        (["train", "--method", "ssvi-lrt", "--sigma-map", "relu"], "sigma_map='relu' must be one of"),
        (["train", "--removal", "foo"], "removal='foo' must be one of"),
        (["train", "--sparsity", "95"], "sparsity=95: give a share from 0 to 1, such as 0.95"),
        (["train", "--sparsity", "nan"], "sparsity=nan: give a share"),
        (["train", "--method", "vi", "--sparsity", ".5"], "method 'vi' does not use 'sparsity'"),
        (["train", "--method", "vi", "--weight-decay", "-1"], "weight_decay=-1.0 must be"),
        (["train", "--prior-sigma", "inf"], "prior_sigma=inf must be"),
        (["train", "--lr", "1e300"], "lr=1e+300 must be"),
        (["train", "--validation", ".9999"], "validation=0.9999"),
        (["train", "--device", "meta"], "device='meta' must be"),
        (["compare", "digits", "--methods", "ssvi", "--seeds", "0", "--keep-dense", "conv7"], "keep_dense='conv7'"),
        (["compare", "digits", "--methods", "vi", "--seeds", "0", "--data", "one.npz"], "examples of 1 class"),
        (["tune", "digits", "--methods", "vd", "--keep-dense", "conv7"], "keep_dense='conv7'"),
        (["tune", "digits", "--methods", "vd", "--data", "nowhere"], "neither a known data set"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)  # fmt: skip
def test_it_is_one_line_and_nothing_is_made(words, message, typed, files, tmp_path, monkeypatch):
    monkeypatch.setattr("ssvi.data.fitting.free_bytes", lambda: 20e9)
    monkeypatch.syspath_prepend(str(tmp_path))
    small = [word for pair in zip(SMALL[::2], SMALL[1::2], strict=True) if pair[0] not in words for word in pair]
    code, said = typed(*words, *small)
    assert code == 1
    assert said.startswith("error: ")
    assert message in said
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == files


def test_after_a_refusal_the_corrected_command_trains(typed, tmp_path):
    assert typed("train", "--method", "vd", "--keep-dense", "conv7", *SMALL, "--out", "run")[0] == 1
    assert typed("train", "--method", "vd", *SMALL, "--out", "run")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [(["digits"], "leave out the recipe 'digits'"), (["--out", "other"], "leave out --out=other")],
)
def test_a_recipe_or_a_folder_beside_resume_is_refused(words, message, typed, run, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    code, said = typed("train", *words, "--resume", str(run))
    assert (code, message in said) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_without_test_images_one_line_says_so(typed, tmp_path):
    np.savez(tmp_path / "own.npz", x=IMAGES, y=np.arange(60) % 2)
    code, said = typed("train", "own.npz", *SMALL, "--out", "run")
    assert code == 0
    assert said.splitlines()[-1] == "run: trained; there are no test examples, so nothing was evaluated"
    code, said = typed("train", "own.npz", *SMALL, "--out", "again", "--json")
    assert json.loads(said.splitlines()[-1])["result"]["examples"] == 0


def test_a_missing_tensorboard_is_found_before_the_run(typed, tmp_path, monkeypatch):
    def missing() -> None:
        raise RecipeError("--tensorboard needs TensorBoard")

    monkeypatch.setattr("ssvi.cli.tracking.writer_class", missing)
    monkeypatch.setattr(tensorboard, "writer_class", missing)
    assert typed("train", *SMALL, "--tensorboard", "--out", "run")[0] == 1
    assert list(tmp_path.iterdir()) == []
