"""A command of `ssvi`, run in this process."""

from click.testing import CliRunner

from ssvi.cli import cli


def run_command(*words: object, code: int = 0) -> str:
    """What `ssvi WORDS` prints; it must end with this exit code."""
    result = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output
