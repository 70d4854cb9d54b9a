"""`make audit` passes only where every package was looked up and nothing is known against it."""

import importlib.util
import re
from pathlib import Path

import pytest

PATH = Path(__file__).parent / "audit.py"
AUDITED = {"name": "torch", "version": "2.6.0", "vulns": []}
FLAW = {"id": "PYSEC-1", "fix_versions": ["2.0"]}


@pytest.fixture(scope="module")
def verdict():
    spec = importlib.util.spec_from_file_location("audit", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.verdict


@pytest.mark.parametrize(
    ("packages", "well", "words"),
    [
        ([AUDITED], True, "1 packages audited, 0 vulnerabilities known"),
        ([AUDITED, {"name": "ssvi", "skip_reason": "distribution marked as editable"}], True, "1 packages audited"),
        ([AUDITED, {"name": "b", "skip_reason": "not found on PyPI: b (2.0+cpu)"}], True, "a local version: b"),
        ([AUDITED, {"name": "b", "skip_reason": "not found on PyPI: b (2.0)"}], False, "NOT AUDITED, .*1 packages, b"),
        ([AUDITED | {"vulns": [FLAW]}], False, "torch 2.6.0: PYSEC-1, mended in 2.0"),
        ([], False, "0 packages audited"),
    ],
)
def test_verdict(verdict, packages, well, words):
    passed, lines = verdict(packages)
    assert passed is well
    assert re.search(words, "\n".join(lines))
