"""The report in a real browser: nothing is missing, cut off, on top of something else, or wider than the window."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from small_tables import finished_table

from ssvi.evaluation import FinishedRun
from ssvi.report import write_report

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
    const texts = [...svg.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]);
    texts.forEach(([text, t], i) => {
      if (t.left < box.left - 1 || t.right > box.right + 1 || t.top < box.top - 1 || t.bottom > box.bottom + 1)
        wrong.push("cut off: " + text.textContent + " in " + svg.ariaLabel);
      texts.slice(i + 1).forEach(([other, o]) => {
        const across = Math.min(t.right, o.right) - Math.max(t.left, o.left);
        if (across > 1 && Math.min(t.bottom, o.bottom) - Math.max(t.top, o.top) > 4)  // boxes are higher than letters
          wrong.push("on top of each other: " + text.textContent + ", " + other.textContent + " in " + svg.ariaLabel);
      });
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
    check_in_browser(
        written[0].replace("prefers-color-scheme: dark", "min-width: 1px") if dark else written[0], width, tmp_path
    )


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("target", ["price", "sold"])
def test_so_it_is_with_a_table(target, tmp_path, width):
    runs = [FinishedRun(shutil.copytree(finished_table(m, target), tmp_path / m)) for m in ("ssvi", "ensemble")]
    check_in_browser(write_report(runs, tmp_path / "report.html", samples=2).html.read_text(), width, tmp_path)


def check_in_browser(page, width, tmp_path):
    """Open the page in a frame of this width, and let the probe look for what is wrong."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
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
