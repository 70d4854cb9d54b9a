"""The size and shape of the source, as one table: python tests/house.py

Files, functions, untyped results, cycles between packages, and the modules that one training batch passes through.
"""

import ast
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "ssvi"


def functions(files: list[Path]) -> list[tuple[int, str]]:
    """(lines, where) of every function."""
    return [
        (node.end_lineno - node.lineno + 1, f"{file.relative_to(SOURCE)}:{node.lineno} {node.name}")
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def package_edges(files: list[Path]) -> set[tuple[str, str]]:
    """Which package, or module of the root, imports which."""
    names = {p.name.removesuffix(".py") for p in SOURCE.iterdir()}
    edges = set()
    for file in files:
        own = file.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text())):
            targets = []
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
            for target in targets:
                head, _, rest = target.partition(".")
                other = rest.split(".")[0]
                if head == "ssvi" and other in names and other != own and not own.startswith("__"):
                    edges.add((own, other))
    return edges


def cycles(edges: set[tuple[str, str]]) -> list[set[str]]:
    """The sets of packages that reach each other (strongly connected components of more than one)."""
    nodes = {n for edge in edges for n in edge}
    reach = {n: {n} for n in nodes}
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            if not reach[b] <= reach[a]:
                reach[a] |= reach[b]
                changed = True
    found = {frozenset(b for b in reach[a] if a in reach[b]) for a in nodes}
    return [set(group) for group in found if len(group) > 1]


BATCH = """
import sys, tempfile
from pathlib import Path
{start}
passed, returns = [], 0
def look(frame, event, arg):
    global returns
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("ssvi") and name not in passed:
        passed.append(name)
sys.setprofile(look)
{batch}
sys.setprofile(None)
print(len(passed), " ".join(passed))
"""


def version_seconds() -> float:
    """The median of five calls of `ssvi --version`."""
    ssvi = Path(sys.executable).parent / "ssvi"
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([ssvi, "--version"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    files = sorted(SOURCE.rglob("*.py"))
    lines = {file: len(file.read_text().splitlines()) for file in files}
    made = functions(files)
    longest = max(lines, key=lambda file: lines[file])
    rows = {
        "modules": len(files),
        "modules in the root": len(list(SOURCE.glob("*.py"))),
        "lines of a file, median": statistics.median(lines.values()),
        "longest file": f"{lines[longest]} ({longest.relative_to(SOURCE)})",
        "lines of a function, median": statistics.median(n for n, _ in made),
        "longest function": "{} ({})".format(*max(made)),
        "functions over 40 lines": sum(n > 40 for n, _ in made),
        "dict[str, Any]": sum(file.read_text().count("dict[str, Any]") for file in files),
        "package cycles": cycles(package_edges(files)) or "none",
        "seconds of ssvi --version": f"{version_seconds():.2f}",
        "load average": os.getloadavg()[0],
    }
    for name, value in rows.items():
        print(f"{name:32} {value}")


if __name__ == "__main__":
    main()
