"""The README as the description of the package: on PyPI a relative link would lead nowhere."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def hatch_readme():
    spec = importlib.util.spec_from_file_location("hatch_readme", ROOT / "hatch_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", text)


def test_with_an_address_every_link_and_picture_is_absolute(hatch_readme):
    text = hatch_readme.description(README, "https://host/owner/ssvi", "v1.0")
    links = [link or picture for link, picture in targets(text)]
    assert all(link.startswith("https://") for link in links)
    assert "https://host/owner/ssvi/blob/v1.0/docs/results.md#uci-regression" in links
    assert "https://host/owner/ssvi/raw/v1.0/docs/howto/figures/report.png" in links
    assert "https://openreview.net/forum?id=TRrXkVdhwi" in links


def test_elsewhere_it_is_the_readme(hatch_readme):
    assert hatch_readme.description(README, "", "v1.0") == README


def test_the_address_is_what_github_tells(hatch_readme, monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert hatch_readme.repository() == ""
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/ssvi")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://host")
    assert hatch_readme.repository() == "https://host/owner/ssvi"


def test_the_metadata_has_the_description_and_the_address(hatch_readme, monkeypatch):
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/ssvi")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://host")
    hook, metadata = hatch_readme.CustomMetadataHook.__new__(hatch_readme.CustomMetadataHook), {}
    monkeypatch.setattr(hatch_readme.CustomMetadataHook, "root", ROOT, raising=False)
    hook.update(metadata)
    assert metadata["urls"] == {"Repository": "https://host/owner/ssvi"}
    assert metadata["readme"]["text"].startswith("# ssvi\n")
