"""Builds the site: `make docs`.

    python docs/tools/build.py [--no-run]

1. The tutorials whose code has changed are run (`tutorials.py`), and the page of the command line is written anew.
2. docs/ is copied to out/docs, with the files of the project that pages link to (`OUTSIDE`).
3. Zensical builds site/; a broken link or anchor is an error.
4. Nothing in site/ may be fetched from another address.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOOLS, STAGED, SITE = ROOT / "docs" / "tools", ROOT / "out" / "docs", ROOT / "site"
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Files beside docs/ that become pages of the site, in its folder project/."""

WIDE = "---\nhide:\n  - navigation\n  - toc\n---\n"
"""Before the landing page: it has the whole width. A code host would show these lines as a table."""
SHIM = "https://unpkg.com/iframe-worker/shim"
"""What the theme would fetch for the search in pages that are opened as files; theme/worker.js is ours."""
FETCHED = re.compile(r"""<(?:script|img|iframe|source|link)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
"""What a browser would fetch from elsewhere without a click."""


def staged(text: str, depth: int) -> str:
    """A page of docs/, with its links to the files outside."""
    for name in OUTSIDE:
        text = text.replace(f"]({'../' * (depth + 1)}{name}", f"]({'../' * depth}project/{name}")
    return text


def from_root(text: str) -> str:
    """A file of the project's folder as a page of project/; links to what is no page become plain words."""
    text = re.sub(r"\]\(docs/", "](../", text)
    return re.sub(r"\[([^\]]+)\]\((?!\.\./|https?:|#|[\w-]+\.md)[^)]*\)", r"\1", text)


def stage() -> None:
    """Make out/docs."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(ROOT / "docs", STAGED, ignore=shutil.ignore_patterns("tools", "__pycache__"))
    for page in STAGED.rglob("*.md"):
        page.write_text(staged(page.read_text(), len(page.relative_to(STAGED).parts) - 1))
    landing = STAGED / "index.md"
    landing.write_text(WIDE + landing.read_text())
    (STAGED / "project").mkdir()
    for name in OUTSIDE:
        (STAGED / "project" / name).write_text(from_root((ROOT / name).read_text()))
    shutil.copytree(TOOLS / "theme", STAGED / "theme")


def make_offline() -> None:
    """Let the search do without the network, and refuse a site that fetches anything from elsewhere."""
    for page in SITE.rglob("*.html"):
        text = page.read_text().replace(SHIM, "../" * (len(page.relative_to(SITE).parts) - 1) + "theme/worker.js")
        page.write_text(text)
        if match := FETCHED.search(text):
            sys.exit(f"{page} fetches from another address: {match[0]}")


def main() -> None:
    """All four steps."""
    if "--no-run" not in sys.argv:
        subprocess.run([sys.executable, TOOLS / "tutorials.py"], check=True)
        subprocess.run([sys.executable, TOOLS / "command_line.py"], check=True)
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    command = [Path(sys.executable).parent / "zensical", "build", "--strict"]
    subprocess.run(command, check=True, cwd=ROOT, env=environment())
    make_offline()


def environment() -> dict[str, str]:
    """That of this process, in which Python also finds the extension `mathml`."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")])}


if __name__ == "__main__":
    main()
