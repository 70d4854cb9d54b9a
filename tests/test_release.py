"""The version stands in several files, and is the same in all of them."""

import importlib.util
import re
from pathlib import Path

import ssvi

ROOT = Path(__file__).parent.parent


def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tests" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_package_citation_and_changelog_have_one_version():
    assert set(release().versions().values()) == {ssvi.__version__}
    assert release().main(f"v{ssvi.__version__}") is None


def test_a_tag_of_another_version_is_refused():
    assert "the tag has 9.9.9" in release().main("v9.9.9")


def test_a_place_without_a_version_is_named(tmp_path):
    for place in release().PLACES:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text((ROOT / place).read_text())
    (tmp_path / "CITATION.cff").write_text("title: ssvi\n")
    assert release().versions(tmp_path)["CITATION.cff"] == "none"


def test_the_changelog_has_the_headings_of_keep_a_changelog():
    """Newest first, "Unreleased" on top, and under each version only the six kinds of changes."""
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (.+)$", text, re.M)
    assert versions[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds
