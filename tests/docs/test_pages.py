"""The pages without building them: links, anchors, navigation, every public name in the reference, outputs of the code."""

import importlib
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

import ssvi
from ssvi import methods

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAMED = sorted(ROOT.glob("*.md")) + PAGES
LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")


def tool(name: str):
    """A program of docs/tools as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_tools_{name}", DOCS / "tools" / f"{name}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(path: Path) -> list[str]:
    text = re.sub(r"^```.*?^```$|<!-- (?:draw|check)\n.*?-->", "", path.read_text(), flags=re.M | re.S)
    return [a or b for a, b in LINK.findall(text) if not (a or b).startswith(("http:", "https:", "mailto:"))]


def anchors(path: Path) -> set[str]:
    """The anchors of the headings, as code hosts and Markdown's `toc` make them; a second one of a name has a number."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S), re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip())
        found.add(name if name not in found else f"{name}_1")
    return found


@pytest.mark.parametrize("page", NAMED, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_a_broken_link_would_be_found(tmp_path):
    (tmp_path / "page.md").write_text("# A page\n[gone](gone.md) and [no heading](#nothing)\n```\n[code](x)\n```\n")
    assert links(tmp_path / "page.md") == ["gone.md", "#nothing"]
    assert anchors(tmp_path / "page.md") == {"a-page"}


ITEM = r"- |\d+\. "


@pytest.mark.parametrize("page", NAMED, ids=lambda p: str(p.relative_to(ROOT)))
def test_lists_are_lists_on_the_site_too(page):
    """Code hosts forgive a list without an empty line before it, and two spaces before a paragraph of an item."""
    text = re.sub(r"^```.*?^```$|<!-- (?:draw|check)\n.*?-->", "", page.read_text(), flags=re.M | re.S)
    for block in re.split(r"\n\s*?\n", text):
        first, *lines = re.sub(r"\A(?:\s*\n|(?:#|<!--).*\n)*", "", block + "\n").splitlines() or [""]
        assert not re.match(r" {1,3}\S", first), f"four spaces are needed before: {first}"
        if not re.match(ITEM, first):  # a paragraph or a table
            late = [line for line in lines if re.match(ITEM, line)]
            assert late == [], "an empty line is missing before"


def places(nav: list) -> list[str]:
    """The pages of the navigation, from top to bottom."""
    return [p for entry in nav for v in entry.values() for p in (places(v) if isinstance(v, list) else [v])]


def test_the_navigation_has_every_page_once():
    nav = places(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    outside = [f"project/{name}" for name in tool("build").OUTSIDE]
    assert sorted(nav) == sorted([*(str(p.relative_to(DOCS)) for p in PAGES), *outside])


def names_in_reference() -> set[str]:
    return set(re.findall(r"^::: (\S+)$", "\n".join(p.read_text() for p in (DOCS / "reference").glob("*.md")), re.M))


def test_every_public_name_is_in_the_reference():
    assert {f"ssvi.{name}" for name in ssvi.__all__} <= names_in_reference()


def test_every_name_in_the_reference_exists():
    for name in names_in_reference():
        home, _, attribute = name.rpartition(".")
        module = importlib.import_module(home)
        assert hasattr(module, attribute) or importlib.util.find_spec(name), name


def test_the_page_of_the_command_line_is_what_the_commands_say():
    command_line = tool("command_line")
    assert command_line.PAGE.read_text() == command_line.page(), "run: python docs/tools/command_line.py"


@pytest.mark.parametrize("page", tool("tutorials").pages(), ids=lambda p: p.stem)
def test_the_outputs_of_a_page_are_of_its_code(page):
    tutorials = tool("tutorials")
    stamp = tutorials.STAMP.search(page.read_text())
    assert stamp, f"run: python docs/tools/tutorials.py {page.relative_to(ROOT)}"
    assert stamp[2] == tutorials.code_of(page.read_text()), "the code was changed after its outputs: run `make docs`"


def test_every_figure_is_shown():
    shown = {(p.parent / link).resolve() for p in PAGES for link in links(p) if link.endswith((".svg", ".png"))}
    assert shown == {p.resolve() for p in DOCS.rglob("figures/*")}


def test_every_method_has_a_paragraph_of_what_its_authors_would_object_to():
    sections = re.split(r"^## ", (DOCS / "baselines.md").read_text(), flags=re.M)
    for name in methods.NAMES:
        (own,) = [text for text in sections if name in re.findall(r"[\w-]+", text.partition("\n")[0])]
        assert re.findall(r"^- \*\*(Kept|Different|They would object)\*\*", own, re.M) == [
            "Kept",
            "Different",
            "They would object",
        ]
