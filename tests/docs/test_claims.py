"""The numbers of the README and of the landing page are those of the tables that they were taken from."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README, LANDING = ROOT / "README.md", ROOT / "docs" / "index.md"
PERFORMANCE, RESULTS = ROOT / "docs" / "performance.md", ROOT / "docs" / "results.md"


def claims(page: Path) -> str:
    return re.search(r"<!-- claims.*?-->\n(.*?)<!-- end claims -->", page.read_text(), re.S)[1]


def row(page: Path, start: str, *headings: str) -> list[float]:
    """The numbers in the cells after the first ones of a row, in order; below these headings, each below the one before."""
    text = page.read_text()
    for heading in headings:
        text = text[text.index(heading) :]
    (line, *_) = [line for line in text.splitlines() if line.startswith(start)]
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*", line.removeprefix(start))]


IVON, LRT = "| ResNet-18 step of IVON, optimiser included |", "| ResNet-18 step, local reparameterisation |"


def speeds(step: str, against: str) -> tuple[float, float, float]:
    """Seconds of the dense side and ours, and their ratio, at 95 %."""
    dense, _, _, ratio, ours, *_ = row(PERFORMANCE, f"{step} {against} |", "## The training step at one theta")
    return dense / 1000, ours / 1000, ratio


def test_speeds():
    plain, ours, faster = speeds(IVON, "deterministic (nhwc)")
    ivon, _, than_ivon = speeds(IVON, "dense IVON (nhwc)")
    vi, lrt, than_vi = speeds(LRT, "dense VI (nchw)")
    table, list_ = claims(README), claims(LANDING)
    assert f"| {ours:.2f} s | plain training {plain:.2f} s, dense IVON {ivon:.2f} s |" in table
    assert f"| {faster} and {than_ivon} times as fast |" in table
    assert f"| {lrt:.2f} s | dense VI {vi:.1f} s | {than_vi} times as fast |" in table
    assert f"{faster} times as fast as plain training" in list_
    assert f"{than_vi} times as fast as dense variational" in list_


def test_memory():
    ours, of_vi, of_plain = row(PERFORMANCE, "| IVON, 95% |")
    vi, plain = row(PERFORMANCE, "| dense VI |")[0], row(PERFORMANCE, "| deterministic |", "## Peak memory")[0]
    expected = f"| {ours / 1000:.2f} GB | dense VI {vi / 1000:.1f} GB, plain training {plain / 1000:.2f} GB |"
    assert f"{expected} {of_vi} and {of_plain} of it" in claims(README)
    assert f"takes {of_vi} of the peak memory" in claims(LANDING)
    assert f"and {of_plain} of plain training's" in claims(LANDING)


def test_one_image_at_a_time():
    lines = [line for line in PERFORMANCE.read_text().splitlines() if re.search(r"\| 1 \| \d threads? \|", line)]
    ratios = [float(re.search(r"([\d.]+)x [|*]", line)[1]) for line in lines]
    assert len(ratios) > 5
    assert f"| {min(ratios):.1f} to {max(ratios):.1f} of the speed |" in claims(README)
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times the speed of torch's own" in claims(LANDING)


def test_little_of_cifar10():
    headings = ("## cifar10-5000:", "### Table 2")
    ours, spread, nll, _, _, _, ece, *_ = row(RESULTS, "| cifar10 | SSVI, density 0.05 |", *headings)
    rigl, its_spread, its_nll, _, _, _, its_ece, *_ = row(RESULTS, "| cifar10 | RigL, density 0.05 |", *headings)
    assert f"| **{ours:.1f}** ± {spread:.1f} %, NLL **{nll:.2f}**, ECE **{ece:.3f}** |" in claims(README)
    assert f"| RigL {rigl:.1f} ± {its_spread:.1f} %, {its_nll:.2f}, {its_ece:.3f} |" in claims(README)
    assert f"{ours:.1f} % and NLL {nll:.2f}, RigL {rigl:.1f} % and {its_nll:.2f} (three seeds)" in claims(LANDING)
    assert f"{ece:.3f} against {its_ece:.3f}" in claims(LANDING)


def beside_rigl(heading: str, tag: str = "") -> list[tuple[float, float, float, float]]:
    """Accuracy, its spread, NLL and ECE of SSVI and of RigL at width 32."""
    rows = [row(RESULTS, f"| {name}, density 0.05, width 32{tag} |", heading) for name in ("SSVI", "RigL")]
    return [(accuracy, spread, nll, ece) for accuracy, spread, nll, _, ece, *_ in rows]


def test_equal_time():
    ours, rigl = beside_rigl("### Equal time: 5.0 minutes")
    assert "| {:.1f} ± {:.1f} %, NLL {:.3f}, ECE {:.3f} |".format(*ours) in claims(README)
    assert "| RigL **{:.1f}** ± {:.1f} %, **{:.3f}**, {:.3f} |".format(*rigl) in claims(README)
    assert f"{ours[0]:.1f} % and NLL {ours[2]:.3f} against {rigl[0]:.1f} % and {rigl[2]:.3f} for RigL" in claims(
        LANDING
    )


def test_equal_time_of_thirty_epochs():
    ours, rigl = beside_rigl("## cifar10-width32-30-epochs: equal time", ", long-steps")
    assert "| {:.1f} ± {:.1f} %, NLL **{:.3f}**, ECE **{:.3f}** |".format(*ours) in claims(README)
    assert "| RigL {:.1f} ± {:.1f} %, {:.3f}, {:.3f} |".format(*rigl) in claims(README)
    assert f"{ours[0]:.1f} % and {ours[2]:.3f} against {rigl[0]:.1f} % and {rigl[2]:.3f}" in claims(LANDING)
    assert f"with an ECE of {ours[3]:.3f} against {rigl[3]:.3f}" in claims(LANDING)


def test_digits():
    accuracy, spread = row(RESULTS, "| digits | SSVI, density 0.05 |")[:2]
    plain, its_spread = row(RESULTS, "| digits | deterministic |")[:2]
    seconds = [
        row(RESULTS, f"| {name} |", "### Time and memory")[0] for name in ("SSVI, density 0.05", "deterministic")
    ]
    live = row(RESULTS, "| digits | SSVI, density 0.05 |", "### Table 2")[9]
    assert f"| {accuracy:.1f} ± {spread:.1f} % with {live:,.0f} weights, {seconds[0]} s |" in claims(README)
    assert f"**{plain:.1f}** ± {its_spread:.1f} % with 52,768, **{seconds[1]} s** |" in claims(README)
    assert f"trains in {seconds[0]} s, plain training of it in {seconds[1]} s" in claims(LANDING)


def test_uci():
    lines = RESULTS.read_text().splitlines()
    bayes, plain = (
        [
            float(re.findall(r"([\d.]+) %", line)[-1])
            for line in lines
            if line.startswith(start) and line.endswith("20 |")
        ]
        for start in ("| SSVI, density 0.5 |", "| plain training")
    )
    assert (len(bayes), len(plain)) == (7, 7)
    assert (
        f"| hold {min(bayes):.0f} to {max(bayes):.0f} % | plain training {min(plain):.0f} to {max(plain):.0f} % |"
        in (claims(README))
    )
    assert f"hold {min(bayes):.0f} to {max(bayes):.0f} % of the targets" in claims(LANDING)
    assert f"plain training {min(plain):.0f} to {max(plain):.0f} %" in claims(LANDING)


def test_an_hour_of_cifar10():
    card = ROOT / "zoo" / "cifar10-hour" / "evaluation.json"
    if not card.exists():
        pytest.skip("the folder zoo/ is in the repository, not in the source package")
    metrics = json.loads(card.read_text())["metrics"]
    said = [metrics[name]["value"] for name in ("accuracy", "nll", "ece")]
    assert "| {:.1%}, NLL **{:.3f}**, ECE **{:.3f}** |".format(*said).replace("%", " %") in claims(README)
    rigl = row(RESULTS, "| RigL, density 0.05, width 64 |", "## cifar10-hour: equal time")
    assert "| RigL, 44 epochs, **{:.1f} %**, {:.3f}, {:.3f} |".format(*rigl) in claims(README)


def test_an_hour_of_cifar10_under_corruptions():
    said = RESULTS.read_text().split("- **Under the corruptions of this hour**", 1)[1].split("\n- ")[0]
    by_severity = re.findall(r"([\d.]+), ([\d.]+)\s+and\s+([\d.]+)", said.split("):", 1)[1])
    nll, its_nll, ece, its_ece, accuracy, its_accuracy = [middle for _, middle, _ in by_severity]
    assert f"| {accuracy} %, NLL **{nll}**, ECE **{ece}** |" in claims(README)
    assert f"| RigL **{its_accuracy} %**, {its_nll}, {its_ece} |" in claims(README)
