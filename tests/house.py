"""The size and shape of the source as one table: python tests/house.py

Files, functions, untyped results, cycles between packages, and the modules that one training batch passes: those whose
code runs from the moment a batch is drawn until the next one is, and those that called them. A return is a call from a
module to one that was passed before it.
"""

import ast
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

SOURCE = Path(__file__).parent.parent / "src" / "ssvi"
STEP, EVERY = 3, 10
"""A batch without an update of gamma, and the interval of updates: the batch with that number has one."""


def functions(files: list[Path]) -> list[tuple[int, str]]:
    """(lines, where) of every function."""
    return [
        (node.end_lineno - node.lineno + 1, f"{file.relative_to(SOURCE)}:{node.lineno} {node.name}")
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


class Passage:
    """Watches one batch of `ssvi train` and notes the modules that it passes."""

    def __init__(self, step: int) -> None:
        self.step, self.drawn, self.watching = step, 0, False
        self.modules: list[str] = []
        self.calls: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_qualname == "Batches._batch":
            self.drawn += 1
            self.watching = self.drawn == self.step
            self.modules += list(dict.fromkeys(reversed(callers(frame)))) if self.watching else []
        if self.watching and name.startswith("ssvi"):
            self.modules += [] if name in self.modules else [name]
            caller = next(iter(callers(frame)), name)
            if caller != name and (caller, name) not in self.calls:
                self.calls.append((caller, name))

    @property
    def returns(self) -> int:
        """Pairs of modules in which the later one calls the earlier one."""
        return sum(self.modules.index(b) < self.modules.index(a) for a, b in self.calls)


def callers(frame: FrameType) -> list[str]:
    """The modules of the package on the stack above a frame, the nearest first."""
    names = []
    while (frame := frame.f_back) is not None:
        names.append(frame.f_globals.get("__name__", ""))
    return [name for name in names if name.startswith("ssvi")]


def watch_training(step: int) -> None:
    """Train a little and print what the batch with this number passed."""
    from ssvi.cli import main

    out = Path(tempfile.mkdtemp()) / "run"
    sys.argv = ["ssvi", "train", "digits", "--epochs", "1", "--width", "8", "--every", str(EVERY), "--out", str(out)]
    passage, stdout = Passage(step), sys.stdout
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the process ends soon
    sys.setprofile(passage)
    main()
    sys.setprofile(None)
    print(f"{len(passage.modules)} ({passage.returns} returns): {' '.join(passage.modules)}", file=stdout)


def batch(step: int) -> str:
    """The modules of one batch, from a process of its own."""
    command = [sys.executable, __file__, str(step)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def version_seconds() -> float:
    """The median of five calls of `ssvi --version`."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([Path(sys.executable).parent / "ssvi", "--version"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table() -> dict[str, object]:
    """Every row by its name."""
    files = sorted(SOURCE.rglob("*.py"))
    lines = {file: len(file.read_text().splitlines()) for file in files}
    lengths, longest = functions(files), max(lines, key=lambda file: lines[file])
    return {
        "modules": len(files),
        "modules in the root": len(list(SOURCE.glob("*.py"))),
        "lines of a file, median": statistics.median(lines.values()),
        "longest file": f"{lines[longest]} ({longest.relative_to(SOURCE)})",
        "lines of a function, median": statistics.median(length for length, _ in lengths),
        "longest function": "{} ({})".format(*max(lengths)),
        "dict[str, Any]": sum(file.read_text().count("dict[str, Any]") for file in files),
        "seconds of ssvi --version": f"{version_seconds():.2f}",
        "modules of a batch": batch(STEP),
        "with an update of gamma": batch(EVERY),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watch_training(int(sys.argv[1]))
    else:
        for name, value in table().items():
            print(f"{name:30} {value}")
