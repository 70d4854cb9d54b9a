"""Nothing in the package unpickles a file: a pickle can run any code."""

import ast
from pathlib import Path

import pytest

import ssvi

SOURCE = Path(ssvi.__file__).parent
PICKLE_MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve"}
SAFE_OPTION = {"np.load": ("allow_pickle", False), "torch.load": ("weights_only", True)}


def unpicklings(code):
    """The lines that import a module of pickles, or call np.load or torch.load without the option that makes it safe."""
    lines = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            unsafe = any(module.partition(".")[0] in PICKLE_MODULES for module in modules)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SAFE_OPTION:
            name, value = SAFE_OPTION[ast.unparse(node.func)]
            options = {option.arg: option.value for option in node.keywords}
            unsafe = ast.unparse(options[name]) != str(value) if name in options else True
        else:
            unsafe = False
        lines += [node.lineno] if unsafe else []
    return lines


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("import os, pickle", [1]),
        ("import os\nfrom pickle import load", [2]),
        ("np.load(path)", [1]),
        ("np.load(path, allow_pickle=True)", [1]),
        ("torch.load(path, weights_only=False)", [1]),
        ("np.load(path, allow_pickle=False)\ntorch.load(path, weights_only=True)\nimport json", []),
    ],
)
def test_unpickling_is_noticed(code, lines):
    assert unpicklings(code) == lines


def test_nothing_is_unpickled():
    files = list(SOURCE.rglob("*.py"))
    assert SOURCE / "data" / "load.py" in files
    assert [f"{file}:{line}" for file in files for line in unpicklings(file.read_text())] == []
