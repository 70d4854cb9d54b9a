"""A short run of `make fuzz` and of `make chaos`; each in a process of its own, which forks before it computes."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def run(script: str, *words: str) -> str:
    """What the script prints; it must find nothing."""
    ended = subprocess.run([sys.executable, TESTS / script, *words], capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.timeout(600)
def test_random_input_ends_in_a_run_or_in_one_clear_line():
    assert "0 wrong" in run("fuzz.py", "--cases", "30", "--seed", "1")


@pytest.mark.timeout(600)
def test_killed_commands_go_on_to_the_same_files():
    assert "every file is as without them" in run("chaos.py", "--kills", "4", "--seed", "1", "--short")
