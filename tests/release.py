"""Checks that the tag of a release, the package, the citation and the changelog name the same version.

python tests/release.py v0.2.0
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = {
    "src/ssvi/__init__.py": r'__version__ = "(.+)"',
    "CITATION.cff": r"^version: (.+)$",
    "CHANGELOG.md": r"^## \[(\d.*?)\] - \d{4}-\d{2}-\d{2}$",
}
"""Where the version stands; in the changelog the first one is the newest."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each file names."""
    found = {place: re.search(pattern, (root / place).read_text(), re.M) for place, pattern in PLACES.items()}
    return {place: "none" if match is None else match.group(1) for place, match in found.items()}


def main(tag: str) -> str | None:
    """The complaint, if there is one."""
    named = {"the tag": tag.removeprefix("v")} | versions()
    if len(set(named.values())) == 1:
        return None
    return "the versions differ: " + ", ".join(f"{place} has {version}" for place, version in named.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else __doc__)
