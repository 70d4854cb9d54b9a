"""The page in a real browser: files are chosen and dropped, and the answers of the server are shown."""

import base64

import pytest
from browser import chromium
from live_server import live_server
from models_to_serve import Echo

from ssvi.serving import ImageModel, Limits

pytestmark = pytest.mark.slow

HEADLINES = '[...document.querySelectorAll("article h2")].map(h => h.textContent)'
DONE = 'document.querySelectorAll("article:not(.wait)").length === '


@pytest.fixture
def paths(tmp_path, files):
    """Two images, and a file that is none."""
    for name, content in (("a.png", files[0]), ("b.png", files[1]), ("not an image.png", b"hello")):
        (tmp_path / name).write_bytes(content)
    return [tmp_path / "a.png", tmp_path / "b.png", tmp_path / "not an image.png"]


@pytest.fixture
def browser(tmp_path):
    with chromium(tmp_path / "profile") as browser:
        yield browser
    assert browser.of("Runtime.exceptionThrown") == []
    asked = {event["request"]["url"].split(":")[0] for event in browser.of("Network.requestWillBeSent")}
    assert asked <= {"http", "blob", "data"}
    log = [event["entry"]["text"] for event in browser.of("Log.entryAdded")]
    assert [text for text in log if "422" not in text and "ERR_CONNECTION_REFUSED" not in text] == []


def answer_of(model, path):
    return model.answer(model.parse(path.read_bytes()))[0]


def test_chosen_files_are_answered_with_bars_and_uncertainty(browser, loaded, paths):
    model = ImageModel(loaded, samples=3, threshold=99.0)
    with live_server(model) as address:
        browser.open(address)
        browser.choose("#file", paths)
        browser.until(DONE + "3")
        expected = [answer_of(model, path) for path in paths[:2]]
        assert browser.value(HEADLINES) == ["No answer", expected[1].guess, expected[0].guess]
        assert "not a readable image" in browser.value('document.querySelector(".failed .note").textContent')
        shown = 'document.querySelectorAll("article")[2]'
        names = browser.value(f'[...{shown}.querySelectorAll(".bars .name")].map(n => n.textContent)')
        assert names == list(expected[0].probabilities)[:5]
        share = f'{shown}.querySelector(".bars i").clientWidth / {shown}.querySelector(".bars .track").clientWidth'
        assert browser.value(share) == pytest.approx(expected[0].probability, abs=0.02)
        assert browser.value(f'{shown}.querySelector(".entropy").textContent').startswith(
            f"{expected[0].entropy:.3f} of at most 2.303"
        )
        parts = f'["data", "model"].map(n => {shown}.querySelector(".split ." + n).clientWidth)'
        wide = browser.value(f'{shown}.querySelector(".split").clientWidth')
        uncertainties = [expected[0].data_uncertainty, expected[0].model_uncertainty]
        assert browser.value(parts) == pytest.approx([wide * u / 2.3026 for u in uncertainties], abs=1.5)


def test_where_the_network_does_not_know_the_page_says_so(browser, loaded, paths):
    with live_server(ImageModel(loaded, samples=3, threshold=0.0)) as address:
        browser.open(address)
        browser.drop(paths[:1], 200, 200)
        browser.until(DONE + "1")
        assert browser.value(HEADLINES) == ["I don\u2019t know"]
        assert "best guess is" in browser.value('document.querySelector(".unknown .note").textContent')


def test_the_keyboard_opens_the_choice_of_files(browser, model):
    with live_server(model) as address:
        browser.open(address)
        browser("Page.setInterceptFileChooserDialog", enabled=True)
        browser.press("Tab", 9)
        assert browser.value("document.activeElement.id") == "file"
        browser("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, text="\r")
        browser.until("true")
        assert len(browser.of("Page.fileChooserOpened")) == 1


def test_a_server_that_has_ended_is_told(browser, model, paths):
    with live_server(model) as address:
        browser.open(address)
    browser.choose("#file", paths[:1])
    browser.until(DONE + "1")
    assert "cannot be reached" in browser.value('document.querySelector(".note").textContent')


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_nothing_is_wider_than_the_window(browser, loaded, paths, tmp_path, width, scheme):
    with live_server(ImageModel(loaded, samples=3)) as address:
        browser("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        browser("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(address)
        browser.choose("#file", paths)
        browser.until(DONE + "3")
        browser.until("[...document.images].every(i => i.complete)")
        assert browser.value("document.documentElement.scrollWidth") <= width
        picture = browser("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        (tmp_path / f"page-{scheme}.png").write_bytes(base64.b64decode(picture))


def test_the_page_of_a_table_says_where_rows_go(browser):
    with live_server(Echo("row"), Limits()) as address:
        browser.open(address)
        assert "POST /predict/rows" in browser.value("document.body.textContent")
