"""Pages that are run: what a block shows, what a second run changes, and the tutorials themselves."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
spec = importlib.util.spec_from_file_location("tutorials", DOCS / "tools" / "tutorials.py")
tutorials = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tutorials)

PAGE = """# A page

```python
a = 2
print("two:", a)
```

<!-- check
assert a == 2
-->

<!-- draw
from ssvi.plotting import Bar, bars
bars([Bar("one", 1.0, "1")], title="one bar")
-->

```python
a + 1
```

```sh
echo shell > file; cat file
```
"""


@pytest.fixture
def ran(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tutorials.run_page(PAGE, "page")


def test_a_block_is_followed_by_what_it_shows(ran):
    text, figures, _ = ran
    assert "two: 2" in text.split("<!-- check")[0]
    assert '"one bar"' not in text.split("-->\n\n<!-- output -->\n!")[1], "the code of a drawing is before its figure"
    assert "![one bar](figures/page-1.svg)" in text
    assert "```text\n3\n```" in text
    assert "```text\nshell\n```" in text
    assert figures["page-1.svg"].startswith("<svg")


def test_a_page_is_stale_until_it_is_run_and_when_its_code_changes(ran):
    text, _, failed = ran
    assert not failed
    assert tutorials.stale(PAGE)
    assert not tutorials.stale(text)
    assert tutorials.stale(text.replace("a = 2", "a = 2.0"))
    assert not tutorials.stale(text.replace("# A page", "# Another title"))


def test_a_second_run_replaces_the_outputs_of_the_first(ran, monkeypatch, tmp_path):
    again, _, _ = tutorials.run_page(ran[0], "page")
    assert again.replace(again[-60:], "") == ran[0].replace(ran[0][-60:], "")
    assert tutorials.source_of(again) == PAGE


def test_an_error_in_a_page_is_an_error(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text, _, failed = tutorials.run_page("<!-- check\nassert False\n-->\n", "page")
    assert len(failed) == 1
    assert tutorials.stale(text)
    with pytest.raises(RuntimeError, match="no-such-command"):
        tutorials.run_page("```sh\nno-such-command\n```\n", "page")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", tutorials.pages(), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("default")
def test_a_page_does_what_it_asserts(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text, _, failed = tutorials.run_page(page.read_text(), page.stem)
    assert not failed
    assert tutorials.source_of(text) == tutorials.source_of(page.read_text())
