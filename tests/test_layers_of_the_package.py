"""The folders are the layers: a module imports earlier layers and its own, and nothing runs in circles.

The order stands in docs/design.md, where people read it. Every import counts: at the top of a module, inside a function,
relative or for types alone.
"""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "ssvi"
FREE = {"ssvi", "ssvi.__main__"}
"""The lazy table of public names, and the entry point: they may name anything."""


def modules() -> dict[str, Path]:
    """Dotted name and file of every module."""
    files = {}
    for path in SOURCE.rglob("*.py"):
        parts = ("ssvi", *path.relative_to(SOURCE).with_suffix("").parts)
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return files


MODULES = modules()


def imports(name: str, path: Path) -> set[str]:
    """The modules of the package that a file imports anywhere."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    targets: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            targets |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
    return {target for target in targets if target in MODULES and target != name}


def layer(name: str) -> str:
    """The folder of a module, or the module itself if it lies in the root."""
    return name.split(".")[1] if "." in name else name


def order() -> list[str]:
    """The layers from the first to the last, as the page on the design has them."""
    block = re.search(r"```\n(.*?)```", (ROOT / "docs" / "design.md").read_text(), re.S).group(1)
    return [word for line in block.splitlines() for word in line[:28].replace(",", " ").split()]


IMPORTS = {name: imports(name, path) for name, path in MODULES.items() if name not in FREE}


def test_every_folder_and_every_module_of_the_root_has_its_place():
    on_disk = {layer(name) for name in MODULES} - {"ssvi", "__main__"}
    assert set(order()) == on_disk
    assert len(order()) == len(on_disk), "none stands there twice"


@pytest.mark.parametrize("name", IMPORTS)
def test_imports_point_to_earlier_layers(name):
    place = {word: i for i, word in enumerate(order())}
    later = {other for other in IMPORTS[name] if other not in FREE and place[layer(other)] > place[layer(name)]}
    assert later == set()


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; none if there is no such circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: {other for other in others if other not in FREE} for name, others in IMPORTS.items()}
    assert circle(graph) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != [], "a circle would be seen"


def test_the_walk_sees_imports_in_functions_and_relative_ones(tmp_path):
    file = tmp_path / "sample.py"
    file.write_text(
        "def f():\n    from ssvi.nn import layers\n    from . import loss\n    from ..kernels import dense\n"
    )
    assert imports("ssvi.inference.sample", file) == {"ssvi.nn.layers", "ssvi.inference.loss", "ssvi.kernels.dense"}


def test_the_root_has_at_most_ten_files():
    assert len(list(SOURCE.glob("*.py"))) <= 10


def test_only_the_methods_know_the_names_of_methods():
    """No `method == "..."` outside methods/, and no table of their names."""
    from ssvi.methods import NAMES

    tables = []
    for name, path in MODULES.items():
        if layer(name) == "methods":
            continue
        tree = ast.parse(path.read_text())
        compared = [n for n in ast.walk(tree) if isinstance(n, ast.Compare) and "method" in ast.unparse(n.left)]
        tables += [f"{name}: {ast.unparse(n)}" for n in compared if any(f"'{m}'" in ast.unparse(n) for m in NAMES)]
        keys = [
            [k.value for k in n.keys if isinstance(k, ast.Constant)] for n in ast.walk(tree) if isinstance(n, ast.Dict)
        ]
        tables += [f"{name}: {table}" for table in keys if len(set(table) & set(NAMES)) > 1]
    assert tables == []


LOADED = (
    "import sys; {}; "
    "print(*sorted({{m.split('.')[1] for m in sys.modules if m.startswith('ssvi.')}}), 'torch' in sys.modules)"
)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import ssvi", {"cli", "methods", "data", "nn", "True"}),
        ("import ssvi; ssvi.to_bnn, ssvi.Subspace, ssvi.ELBO, ssvi.predict", {"cli", "methods", "data", "training"}),
    ],
)
def test_what_an_import_does_not_load(statement, absent):
    command = [sys.executable, "-c", LOADED.format(statement)]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & absent
