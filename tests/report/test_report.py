"""The report: scales and plots by themselves, the page and the model card as a whole, and in a real browser."""

import itertools
import json
import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_runs import finished

from ssvi.evaluation import FinishedRun, evaluate_corruption

from ssvi.plotting.scale import Scale, linear, log, short
from ssvi.plotting.svg import CHARACTER, apart
from ssvi.report import MOST, write_report
from ssvi.report.sections import SECTIONS
from ssvi.training.run_folder import RunError

VOID = {"meta", "link", "br", "img"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Copies of a run of each method, one of them under a name that would break a careless page."""
    root = tmp_path_factory.mktemp("report")
    names = {"ssvi": "a<b> & 'c'", "vi": "vi", "deterministic": "deterministic-with-a-very-long-name"}
    for method, name in names.items():
        shutil.copytree(finished(method), root / name)
    sparse = FinishedRun(root / names["ssvi"])
    sparse.write("corruption.json", evaluate_corruption(sparse, 1, images=20, cache=False))
    return root


@pytest.fixture(scope="module")
def written(folder):
    runs = [FinishedRun(path) for path in sorted(path for path in folder.iterdir() if path.is_dir())]
    page, card = write_report(runs, folder / "report.html", samples=2)
    return page.read_text(), card.read_text()


class Tags(HTMLParser):
    """Open tags, and whether every one is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def drawings(page):
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", page, re.S)]


def test_the_page_is_whole_and_needs_nothing_else(written):
    page, _ = written
    tags = Tags(page)
    assert tags.open == []
    assert "<script" not in page
    links = [value for name, value in tags.attributes if name in ("src", "href")]
    assert all(value.startswith(("data:", "#")) for value in links)
    assert "url(" not in page
    assert "@import" not in page
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<img[^>]*>", "", page.split("</style>")[1]))


def test_every_section_is_there_for_several_methods(written):
    page, _ = written
    for name in SECTIONS:
        assert f"<h2>{name}</h2>" in page
    assert page.count("<svg") > 25
    assert page.count("data:image/png") > 20


def test_names_are_escaped(written):
    page, _ = written
    assert "a<b> &" not in page
    assert "a<b> & 'c'" in Tags(page).text


def test_labels_stay_inside_their_drawings(written):
    for svg in drawings(written[0]):
        _, _, width, height = map(float, svg.get("viewBox").split())
        for text in svg.iter("text"):
            length = 0.8 * CHARACTER * len(text.text or "")
            x, y = float(text.get("x")), float(text.get("y"))
            start = x - {"middle": length / 2, "end": length}.get(text.get("text-anchor"), 0.0)
            assert start >= -2, text.text
            assert start + length <= width + 2, text.text
            assert 8 <= y <= height, text.text


def test_runs_differ_by_more_than_colour(written):
    markers = {
        (series, mark.tag)
        for svg in drawings(written[0])
        for mark in svg.iter()
        if (found := re.match(r"marker s(\d)", mark.get("class", ""))) and (series := found.group(1))
    }
    assert {("0", "circle"), ("1", "polygon"), ("2", "polygon")} <= markers
    style = written[0].split("</style>")[0]
    assert len(set(re.findall(r"\.line\.s\d \{ (stroke-dasharray: [\d ]+)", style))) == MOST - 1


def test_the_model_card_has_the_numbers_of_the_page(written, folder):
    page, card = written
    found = json.loads((folder / "vi" / "evaluation.json").read_text())
    for text in (page, card):
        assert f"{found['metrics']['nll']['value']:.4f}" in text
        assert f"{found['at_mean']['accuracy']:.2%}" in text
    for line in card.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
    blocks = [block.splitlines() for block in card.split("\n\n") if block.startswith("|")]
    assert all(len({line.count("|") for line in block}) == 1 for block in blocks)


def test_what_is_missing_is_computed_and_kept(folder, written):
    for run in ("vi", "deterministic-with-a-very-long-name"):
        assert (folder / run / "evaluation.json").is_file()
        assert (folder / run / "ood-noise.json").is_file()
        assert not (folder / run / "corruption.json").exists()


def test_a_report_is_replaced_and_anything_else_is_not(tmp_path):
    run = FinishedRun(shutil.copytree(finished(), tmp_path / "run"))
    for _ in range(2):
        write_report([run], tmp_path / "report.html", samples=1)
    (tmp_path / "report.md").write_text("my notes")
    with pytest.raises(RunError, match="not a report"):
        write_report([run], tmp_path / "report.html", samples=1)
    assert (tmp_path / "report.md").read_text() == "my notes"
    assert not list(tmp_path.glob("*.part"))


def test_too_many_runs_are_an_error(tmp_path):
    with pytest.raises(RunError, match=f"1 to {MOST}"):
        write_report([FinishedRun(finished())] * (MOST + 1), tmp_path / "report.html")


@settings(deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_linear_axes_hold_their_values_and_have_ticks(low, span):
    axis = linear([low, low + span])
    assert axis.low <= low + 1e-6 * span
    assert axis.high >= low + span * (1 - 1e-6)
    assert 2 <= len(axis.ticks()) <= 12
    assert axis.at(axis.low) == 0
    assert axis.at(axis.high) == 1


@settings(deadline=None)
@given(st.floats(1e-8, 1e8), st.floats(1, 1e8))
def test_log_axes_hold_their_values_and_have_ticks(low, factor):
    axis = log([low, low * factor])
    assert 0 < axis.at(low) <= axis.at(low * factor) < 1
    assert 1 <= len(axis.ticks()) <= 12


def test_a_constant_has_an_axis():
    assert linear([0.0]).at(0.0) < 1
    assert linear([3.0, 3.0]).low < 3 < linear([3.0, 3.0]).high
    assert Scale(0, 1, "sqrt").at(0.25) == 0.5


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (1e-5, "1e-5"), (12345, "12.3k"), (2.5e9, "2.5G"), (1.1e17, "110P"), (-0.5, "-0.5")],
)
def test_numbers_on_axes_are_short(value, text):
    assert short(value) == text


@given(st.lists(st.floats(0, 200), max_size=8))
def test_labels_keep_their_distance_and_their_order(wanted):
    placed = apart(sorted(wanted), 13.0, 0.0, 200.0)
    assert all(b - a >= 13.0 - 1e-9 for a, b in itertools.pairwise(placed))
    assert all(position <= 200 for position in placed)


PROBE = """
<script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, wide = frame.clientWidth, wrong = [];
  if (page.documentElement.scrollWidth > wide) wrong.push("wider than the window: " + page.documentElement.scrollWidth);
  page.querySelectorAll("details").forEach(d => d.open = true);
  if (page.documentElement.scrollWidth > wide) wrong.push("details wider than the window");
  page.querySelectorAll("svg").forEach(svg => {
    const box = svg.getBoundingClientRect();
    if (!box.width || !box.height) wrong.push("an empty drawing: " + svg.ariaLabel);
    svg.querySelectorAll("text").forEach(text => {
      const t = text.getBoundingClientRect();
      if (t.left < box.left - 1 || t.right > box.right + 1 || t.top < box.top - 1 || t.bottom > box.bottom + 1)
        wrong.push("cut off: " + text.textContent + " in " + svg.ariaLabel);
    });
  });
  page.querySelectorAll("img").forEach(i => { if (!i.complete || !i.naturalWidth) wrong.push("missing: " + i.alt); });
  page.querySelectorAll("nav a").forEach(a => {
    if (!page.querySelector(a.hash)) wrong.push("no target: " + a.hash);
  });
  document.title = JSON.stringify({wrong, drawings: page.querySelectorAll("svg").length});
});
</script>
"""


OPTIONS = [
    "--headless", "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-quic", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--enable-logging=stderr",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_in_a_real_browser_nothing_is_missing_or_cut_off(written, tmp_path, width, dark):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    page = written[0].replace("prefers-color-scheme: dark", "min-width: 1px") if dark else written[0]
    inside = page.replace("&", "&amp;").replace('"', "&quot;")
    wrapper = tmp_path / "wrapper.html"
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{inside}"></iframe>'
    wrapper.write_text(f'<!doctype html><meta charset="utf-8"><title></title>{PROBE}{frame}', encoding="utf-8")
    done = subprocess.run(
        [browser, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000",
         "--virtual-time-budget=4000", "--dump-dom", wrapper.as_uri()],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    result = json.loads(unescape(re.search(r"<title>(.*?)</title>", done.stdout, re.S).group(1)))
    assert result["wrong"] == []
    assert result["drawings"] == page.count("<svg")
    assert "CONSOLE" not in done.stderr
