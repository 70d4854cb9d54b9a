"""Model files of strangers: what they claim is bounded before memory is taken, and what they hold is checked."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mutated_models import joined, parts, write_bases
from safetensors.torch import load_file, save_file

import ssvi
from ssvi.training.model_header import ModelFileError
from ssvi.training.model_limits import MOST_HEADER_BYTES

FUZZ = Path(__file__).parent.parent / "fuzz_models.py"
NAMES = ("ssvi", "ensemble", "table", "gates")


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    files = write_bases(tmp_path_factory.mktemp("bases"))
    return {file.stem: file for file in files}


def refused(file, content):
    """The one line with which the file is refused."""
    file.write_bytes(content)
    with pytest.raises(ModelFileError) as error:
        ssvi.load(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def with_said(file, change):
    """The file with a change in our own header."""
    header, data = parts(file.read_bytes())
    said = json.loads(header["__metadata__"]["ssvi"])
    change(said)
    header["__metadata__"]["ssvi"] = json.dumps(said)
    return joined(header, data)


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_whole(name, bases):
    assert ssvi.load(bases[name])


CLAIMS = {
    "a wide network": (
        lambda said: said["recipe"].update(width=200_000),
        r"asks for a network of [\d,]+ weights and holds",
    ),
    "a width beyond 64 bits": (lambda said: said["recipe"].update(width=10**30), "not describe a network"),
    "a negative width": (lambda said: said["recipe"].update(width=-3), "not describe a network"),
    "a large image": (lambda said: said["about"].update(size=10**6), "images of"),
    "many channels": (lambda said: said["about"].update(channels=10**9), "images of"),
    "no classes": (lambda said: said["about"].update(classes=[]), "no classes"),
    "a deviation of 0": (lambda said: said["about"].update(std=[0.0]), "deviations that are not positive"),
    "many members": (lambda said: said.update(members=10**9), "members=1000000000, but the file has"),
    "more live weights than weights": (lambda said: said["posteriors"]["0"].update(s=99), "s=99 live weights of d="),
    "a prior of nan": (lambda said: said["posteriors"]["0"].update(prior_sigma=float("nan")), "prior_sigma=nan"),
    "a sigma map": (lambda said: said["posteriors"]["0"].update(sigma_map="eval"), "sigma_map='eval'"),
    "a gate of no kind": (lambda said: said.update(gates={"1": "Popen"}), "does not say 'Popen'"),
    "no model": (lambda said: said["recipe"].pop("model"), "does not say 'model'"),
    "no format": (lambda said: said.pop("format"), "has format None"),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_header_claims_is_bounded(claim, bases, tmp_path):
    change, words = CLAIMS[claim]
    assert re.search(words, refused(tmp_path / "m", with_said(bases["ssvi"], change)))


@pytest.mark.parametrize("depth", [5_000, 500_000])
def test_deep_json(depth, bases, tmp_path):
    header, data = parts(bases["ssvi"].read_bytes())
    header["__metadata__"]["ssvi"] = "[" * depth
    assert "its header is not JSON" in refused(tmp_path / "m", joined(header, data))


def test_a_header_that_lies_about_its_length_is_not_read(bases, tmp_path):
    content = bases["ssvi"].read_bytes()
    lie = (MOST_HEADER_BYTES + 1).to_bytes(8, "little")
    assert f"more than {MOST_HEADER_BYTES:,}" in refused(tmp_path / "m", lie + content[8:])


def with_tensors(bases, tmp_path, change):
    header, _ = parts(bases["ssvi"].read_bytes())
    tensors = load_file(bases["ssvi"])
    change(tensors)
    save_file(tensors, tmp_path / "changed", header["__metadata__"])
    return (tmp_path / "changed").read_bytes()


def filled(name, value):
    return lambda tensors: tensors[name].fill_(value)


INDEX, MU = "4.posterior.index", "4.posterior.mu"
TENSORS = {
    "indices that repeat": (filled(INDEX, 1), "the live weights of 4 are not increasing numbers"),
    "negative indices": (lambda tensors: tensors[INDEX].sub_(1000), "not increasing numbers from 0"),
    "indices beyond the layer": (lambda tensors: tensors[INDEX].add_(1000), "not increasing numbers from 0"),
    "unsorted indices": (lambda tensors: tensors.update({INDEX: tensors[INDEX].flip(0)}), "not increasing numbers"),
    "nan": (filled(MU, float("nan")), f"{MU} has values that are not finite"),
    "too large for float32": (lambda tensors: tensors.update({MU: tensors[MU].double() * 1e300}), "not finite"),
    "integers as weights": (lambda tensors: tensors.update({MU: tensors[MU].int()}), f"{MU} is torch.int32"),
    "rho of another shape": (
        lambda tensors: tensors.update({"4.posterior.rho": torch.zeros(3)}), "4.posterior.rho has shape (3,)",
    ),
    "a tensor that is missing": (lambda tensors: tensors.pop("9.bias"), "it lacks 9.bias"),
    "a tensor too much": (lambda tensors: tensors.update({"more": torch.zeros(3)}), "nothing of that name"),
    "a negative variance": (filled("1.running_var", -1), "negative variance"),
    "a sigma of 0": (filled("4.posterior.sigma_init", 0), "deviations of 4 are not positive"),
}  # fmt: skip


@pytest.mark.parametrize("damage", TENSORS)
def test_what_a_file_holds_is_checked(damage, bases, tmp_path):
    change, words = TENSORS[damage]
    assert words in refused(tmp_path / "m", with_tensors(bases, tmp_path, change))


def fuzz(count, seed):
    done = subprocess.run(
        [sys.executable, str(FUZZ), "--count", str(count), "--seed", str(seed)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} mutations: " in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_some_mutations():
    """Of every kind; `make fuzz-models` takes 10,000."""
    fuzz(300, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")
def test_ten_thousand_mutations():
    fuzz(10_000, seed=0)
