"""The README as the description of the package. On PyPI its relative links would lead nowhere.

Where GitHub builds the package, it tells the address of the repository: links and pictures then get that, at the tag of the
version. Elsewhere the README stays as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # imported for `description` alone, outside a build
    MetadataHookInterface = object  # type: ignore[assignment, misc]


def repository() -> str:
    """The address of the repository, if this is a build on GitHub."""
    name = os.environ.get("GITHUB_REPOSITORY", "")
    return name and f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"


def description(readme: str, address: str, tag: str) -> str:
    """The README, its relative links and pictures with the address in front."""
    if not address:
        return readme
    readme = re.sub(r"\]\((?!https?:|#)", f"]({address}/blob/{tag}/", readme)
    return re.sub(r'src="(?!https?:)', f'src="{address}/raw/{tag}/', readme)


class CustomMetadataHook(MetadataHookInterface):
    """Gives the description and the addresses of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling when it reads pyproject.toml."""
        root, address = Path(self.root), repository()
        version = re.search(r'__version__ = "(.+)"', (root / "src" / "ssvi" / "__init__.py").read_text())
        assert version is not None
        text = description((root / "README.md").read_text(), address, f"v{version[1]}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {"Repository": address} if address else {}
