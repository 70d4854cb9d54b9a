"""Writes docs/reference/command-line.md: the help of every command.

python docs/tools/command_line.py
"""

from pathlib import Path

import click

from ssvi.cli import COMMANDS, cli, load_command

PAGE = Path(__file__).parent.parent / "reference" / "command-line.md"
HEAD = """# Command line

What `ssvi COMMAND --help` prints. Written by `python docs/tools/command_line.py`; a test compares it with the commands.
[Training](../training.md) and [evaluation](../evaluation.md) explain the most used ones.
"""


def page() -> str:
    """The page as it should be."""
    root = cli.make_context("ssvi", [], resilient_parsing=True, terminal_width=100, max_content_width=100)
    commands = (click.Context(load_command(name), parent=root, info_name=name) for name in sorted(COMMANDS))
    return "\n".join([HEAD, *map(section, [root, *commands])])


def section(context: click.Context) -> str:
    """The help of a command, as wide as a page."""
    return f"## {context.command_path}\n\n```text\n{context.get_help().rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page())
