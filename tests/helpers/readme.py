"""The quick start of the README as a program."""

import re
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


def quick_start() -> str:
    """The program after the diff; it needs `train_set`, `images` and `epochs`, and ends with `probs`."""
    diff = re.search(r"```diff\n(.*?)```", README.read_text(), re.S).group(1)
    return "\n".join(line[1:] if line[:1] in "+ " else line for line in diff.splitlines() if line[:1] != "-")
