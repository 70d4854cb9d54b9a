"""Runs the programs of the pages that have outputs, tutorials above all, and writes what they print and draw into them.

    python docs/tools/tutorials.py            # the pages whose code, or whose version of ssvi, has changed
    python docs/tools/tutorials.py --all      # every page

The blocks of a page are one program. A python block may end with an expression: a drawing of `ssvi.plotting` becomes a
figure, anything else but None is printed. A sh block runs in the same working folder, which is temporary. A comment
`<!-- check ... -->` is python that is run and not shown: it asserts what the text claims. `<!-- draw ... -->` shows its
output and not its code.
"""

import ast
import contextlib
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import torch

import ssvi
from ssvi.plotting import Drawing

DOCS = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n|^<!-- (check|draw)\n(.*?)^-->\n", re.M | re.S)
OUTPUT = re.compile(r"\n<!-- output -->\n.*?<!-- end output -->\n", re.S)
STAMP = re.compile(r"\n\*Run on .*?by ssvi (\S+) .*?code ([0-9a-f]{8})\)\.\*\n")


def pages() -> list[Path]:
    """The pages that this program runs."""
    marks = ("\n<!-- draw\n", "\n<!-- check\n")
    return sorted(page for page in DOCS.rglob("*.md") if any(mark in page.read_text() for mark in marks))


def code_of(text: str) -> str:
    """Eight digits that change with the code of a page."""
    blocks = [(m[1] or m[3], m[2] or m[4]) for m in BLOCK.finditer(source_of(text))]
    return hashlib.sha256(repr(blocks).encode()).hexdigest()[:8]


def source_of(text: str) -> str:
    """A page without what earlier runs have written."""
    return STAMP.sub("", OUTPUT.sub("", text))


def stale(text: str) -> bool:
    """Whether the outputs of a page are missing, or of other code, or of another version of ssvi."""
    stamp = STAMP.search(text)
    return stamp is None or (stamp[1], stamp[2]) != (ssvi.__version__, code_of(text))


def run_page(text: str, name: str) -> tuple[str, dict[str, str], list[AssertionError]]:
    """The page with its outputs, the text of each figure by its name, and the checks that failed.

    The working folder is that of the caller. A page with failed checks has its outputs, to see why, but no stamp.
    """
    figures: dict[str, str] = {}
    failed: list[AssertionError] = []
    names: dict[str, object] = {"__name__": "__main__"}
    start = time.perf_counter()

    def with_output(block: re.Match[str]) -> str:
        try:
            shown = run_shell(block[2]) if block[1] == "sh" else run_python(block[2] or block[4], names)
        except AssertionError as error:
            failed.append(error)
            return block[0]
        for drawing in shown[1]:
            figures[f"{name}-{len(figures) + 1}.svg"] = drawing.file()
        return block[0] + ("" if block[3] == "check" else output(shown[0], shown[1], list(figures)))

    page = BLOCK.sub(with_output, source_of(text))
    return page + ("" if failed else stamp(code_of(text), time.perf_counter() - start)), figures, failed


def run_python(code: str, names: dict[str, object]) -> tuple[str, list[Drawing]]:
    """What a block prints, and the drawings that its last expression gives."""
    tree = ast.parse(code)
    last = ast.Expression(tree.body.pop().value if isinstance(tree.body[-1], ast.Expr) else ast.Constant(None))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "tutorial", "exec"), names)
        value = eval(compile(ast.fix_missing_locations(last), "tutorial", "eval"), names)
        drawings = [v for v in (value if isinstance(value, list | tuple) else [value]) if isinstance(v, Drawing)]
        if not drawings and value is not None:
            print(value)
    return printed.getvalue(), drawings


def run_shell(code: str) -> tuple[str, list[Drawing]]:
    """What the commands print. An error ends the tutorial."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(["bash", "-ec", code], capture_output=True, text=True, env=environment)
    if ended.returncode:
        raise RuntimeError(f"{code}\n{ended.stdout}\n{ended.stderr}")
    return ended.stdout, []


def output(printed: str, drawings: list[Drawing], figures: list[str]) -> str:
    """The Markdown below a block."""
    pieces = [f"```text\n{printed.rstrip()}\n```\n"] if printed.strip() else []
    pieces += [f"![{title(d)}](figures/{f})\n" for d, f in zip(drawings, figures[-len(drawings) :], strict=False)]
    return "\n<!-- output -->\n" + "\n".join(pieces) + "<!-- end output -->\n" if pieces else ""


def title(drawing: Drawing) -> str:
    """The words that a drawing has for a screen reader."""
    return re.search(r'aria-label="([^"]*)"', drawing.markup)[1]


def stamp(code: str, seconds: float) -> str:
    """The last line of a page: when, by what, how long."""
    versions = f"ssvi {ssvi.__version__} and torch {torch.__version__}"
    return f"\n*Run on {date.today()} by {versions} in {seconds:.0f} s on one thread (code {code}).*\n"


def rewrite(page: Path) -> None:
    """Run a page in a folder of its own, and write it again with its figures."""
    torch.set_num_threads(1)
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            text, figures, failed = run_page(page.read_text(), page.stem)
        finally:
            os.chdir(home)
    (page.parent / "figures").mkdir(exist_ok=True)
    for old in (page.parent / "figures").glob(f"{page.stem}-[0-9]*.svg"):
        old.unlink()
    for name, drawing in figures.items():
        (page.parent / "figures" / name).write_text(drawing)
    page.write_text(text)
    if failed:
        raise ExceptionGroup(f"{page.name}: checks that failed", failed)


def main(arguments: list[str]) -> None:
    """Run the pages that are named, or all, or those that are stale."""
    named = [Path(a).resolve() for a in arguments if a != "--all"]
    for page in named or pages():
        if named or "--all" in arguments or stale(page.read_text()):
            print(f"running {page.name}", flush=True)
            rewrite(page)


if __name__ == "__main__":
    main(sys.argv[1:])
