"""Nothing in the package unpickles a file, runs text as code, or starts a shell; who imports by a name, is listed."""

import ast
from pathlib import Path

import pytest

import ssvi

SOURCE = Path(ssvi.__file__).parent
PICKLES = {"pickle", "_pickle", "cPickle", "pickletools", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FORBIDDEN = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen", "pty.spawn", "subprocess.getoutput",
    "subprocess.getstatusoutput", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "pandas.read_pickle", "torch.jit.load",
    "torch.hub.load", "torch.package.PackageImporter", "tempfile.mktemp", "runpy.run_path", "runpy.run_module",
}  # fmt: skip
SAFE_OPTION = {
    "numpy.load": ("allow_pickle", "False"),
    "numpy.lib.format.read_array": ("allow_pickle", "False"),
    "torch.load": ("weights_only", "True"),
    "tarfile.TarFile.extractall": ("filter", "'data'"),
}
METHODS = {"extractall": "tarfile.TarFile.extractall"}
"""Methods that are known by their name alone."""
LISTED = {
    "importlib.import_module": {
        "__init__.py",  # our own modules, by a table
        "cli/commands.py",  # our own commands, by a table
        "data/tables/extras.py",  # polars and scikit-learn, by names in our code
        "methods/__init__.py",  # the method of a recipe: trusted_code checks those that come from a run folder
        "nn/models.py",  # the network of a recipe: trusted_code checks those that come from a model file or a run folder
    },
    "subprocess.Popen": {
        "comparison/processes.py",  # our own program, with a list of arguments
        "bench/measure.py",  # a process that takes a core, while small layers are measured
    },
    "subprocess.run": {"bench/measure.py"},  # our own program, in a fresh process
}
"""Calls that run what they are given, and the files that may use them; a new one needs a reason here."""


def unsafe(code: str, file: str = "any.py") -> list[int]:
    """The lines with such calls and imports."""
    tree = ast.parse(code)
    names = _imported(tree)
    return [node.lineno for node in ast.walk(tree) if _is_unsafe_import(node) or _is_unsafe_call(node, names, file)]


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each name at hand stands for: np is numpy, `load` may be torch.load."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _is_unsafe_import(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in PICKLES for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PICKLES


def _is_unsafe_call(node: ast.AST, names: dict[str, str], file: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    first, dot, rest = ast.unparse(node.func).partition(".")
    called = METHODS.get(rest.rpartition(".")[2], names.get(first, first) + dot + rest)
    options = {option.arg: ast.unparse(option.value) for option in node.keywords}
    if options.get("shell", "False") != "False":
        return True
    if called in SAFE_OPTION:
        name, value = SAFE_OPTION[called]
        return options.get(name) != value
    if called in LISTED or called.startswith("subprocess."):
        return file not in LISTED.get(called, ())
    return called in FORBIDDEN


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("import os, pickle", [1]),
        ("import os\nfrom pickle import load", [2]),
        ("import numpy as np\nnp.load(path)", [2]),
        ("import numpy\nnumpy.load(path, allow_pickle=True)", [2]),
        ("from numpy import load as read\nread(path)", [2]),
        ("import torch\ntorch.load(path, weights_only=False)", [2]),
        ("import torch as t\nt.load(path)", [2]),
        ("import joblib.externals\nimport shelve", [1, 2]),
        ("import yaml\nyaml.load(text)\nyaml.safe_load(text)", [2]),
        ("eval(text)\nexec(text)\nnet.eval()", [1, 2]),
        ("import subprocess\nsubprocess.run(words)", [2]),
        ("from subprocess import Popen\nPopen(words, shell=True)", [2]),
        ("anything(words, shell=True)", [1]),
        ("from importlib import import_module\nimport_module(name)", [2]),
        ("tar.extractall(folder)\ntar.extractall(folder, filter='data')", [1]),
        (
            "import numpy as np, torch\nnp.load(a, allow_pickle=False)\ntorch.load(a, weights_only=True)\nimport json",
            [],
        ),
    ],
)
def test_unsafe_calls_are_noticed(code, lines):
    assert unsafe(code) == lines


def test_there_are_none():
    files = {file.relative_to(SOURCE).as_posix(): file for file in SOURCE.rglob("*.py")}
    assert "data/load.py" in files
    assert [f"{name}:{line}" for name, file in files.items() for line in unsafe(file.read_text(), name)] == []


def test_the_list_has_no_file_too_much():
    for called, files in LISTED.items():
        for file in files:
            assert called.rpartition(".")[2] in (SOURCE / file).read_text(), f"{file} does not use {called} any more"
