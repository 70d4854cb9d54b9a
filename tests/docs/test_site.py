"""The built site in a browser, opened as a file without any network: search, both colours, nothing from elsewhere."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from browser import chromium

import ssvi

ROOT = Path(__file__).parent.parent.parent
spec = importlib.util.spec_from_file_location("build", ROOT / "docs" / "tools" / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)
BUILD = [sys.executable, str(ROOT / "docs" / "tools" / "build.py"), "--no-run"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not importlib.util.find_spec("zensical"), reason="needs the docs extra: `make docs`"),
]


@pytest.fixture(scope="module")
def site() -> Path:
    built = subprocess.run(BUILD, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / "site"


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        browser("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        yield browser


def test_the_search_finds_a_public_name(site, browser):
    browser.open((site / "index.html").as_uri())
    browser.value('document.querySelector(".md-search__button").click()')
    browser.until("document.activeElement.shadowRoot !== null")  # the dialog of the search
    browser("Input.insertText", text="curvature_importance")
    browser.until('document.activeElement.shadowRoot.textContent.includes("ssvi.curvature_importance")')


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_light_or_dark_and_have_no_errors(site, browser, scheme):
    browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for page in ("index", "tutorials/table", "explanation/mathematics", "reference/training"):
        browser.open((site / f"{page}.html").as_uri())
        red = browser.value("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
        assert (red > 200) == (scheme == "light")
        assert browser.value("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert browser.value('document.querySelectorAll("math").length') == 0
    assert browser.of("Runtime.exceptionThrown") == []


STANDS_OUT = """[...document.querySelectorAll("article *")].filter(e => {
  if (e.getBoundingClientRect().right <= document.documentElement.clientWidth + 1) return false;
  for (let p = e.parentElement; p; p = p.parentElement)
    if (["auto", "scroll", "hidden"].includes(getComputedStyle(p).overflowX)) return false;
  return true;
}).map(e => e.outerHTML.slice(0, 100))"""
"""What a reader would have to move the whole page for; wide tables and code scroll by themselves."""


def test_every_page_fits_a_telephone(site, browser):
    browser("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    for page in sorted(site.rglob("*.html")):
        browser.open(page.as_uri())
        assert browser.value(STANDS_OUT) == [], page
    browser("Emulation.clearDeviceMetricsOverride")


def test_the_landing_page_says_what_is_measured_on_the_first_screen(site, browser):
    browser("Emulation.setDeviceMetricsOverride", width=1280, height=800, deviceScaleFactor=1, mobile=False)
    browser.open((site / "index.html").as_uri())
    bottoms = '[...document.querySelectorAll(".columns li")].map(claim => claim.getBoundingClientRect().bottom)'
    assert max(browser.value(bottoms)) <= 800
    browser("Emulation.clearDeviceMetricsOverride")


def test_formulas_are_mathml(site, browser):
    browser.open((site / "explanation" / "mathematics.html").as_uri())
    assert browser.value('document.querySelectorAll("math").length') > 30
    assert "$" not in browser.value('document.querySelector("article").innerText')


def test_nothing_is_fetched_from_elsewhere(browser):
    kinds = {event["request"]["url"].split(":")[0] for event in browser.of("Network.requestWillBeSent")}
    assert "file" in kinds
    assert kinds <= {"file", "data", "blob", "about"}


def test_every_name_of_the_public_namespaces_is_in_the_built_reference(site):
    pages = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in ssvi.__all__:
        value = getattr(ssvi, name)
        members = getattr(value, "__all__", ()) if isinstance(value, ModuleType) else ()
        for full in [f"ssvi.{name}", *(f"ssvi.{name}.{member}" for member in members)]:
            assert f'id="{full}"' in pages, full


def test_a_broken_link_and_a_broken_anchor_fail(site):
    for broken in ("[x](gone.md)", "[x](ivon.md#gone)"):
        (ROOT / "out" / "docs" / "install.md").write_text(f"# Install\n\n{broken}\n")
        command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
        built = subprocess.run(command, capture_output=True, cwd=ROOT, env=build.environment())
        assert built.returncode != 0, broken
