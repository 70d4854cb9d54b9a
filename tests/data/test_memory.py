"""How much memory may still be taken."""

import math
import subprocess
import sys

import pytest

from ssvi.data import memory


def test_the_smallest_limit_counts(monkeypatch):
    for smallest in ("_of_machine", "_of_control_group", "_of_process"):
        with monkeypatch.context() as patch:
            for name in ("_of_machine", "_of_control_group", "_of_process"):
                patch.setattr(memory, name, lambda value=5.0 if name == smallest else math.inf: value)
            assert memory.free_bytes() == 5.0


def test_a_control_group_leaves_what_is_not_used(tmp_path):
    assert memory._of_control_group(tmp_path) == math.inf, "there is none"
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("700\n")
    assert memory._of_control_group(tmp_path) == math.inf
    (tmp_path / "memory.max").write_text("1000\n")
    assert memory._of_control_group(tmp_path) == 300
    (tmp_path / "memory.max").write_text("500\n")
    assert memory._of_control_group(tmp_path) == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of a process is that of Linux")
def test_the_limit_of_the_process_counts():
    code = (
        "import resource\nfrom ssvi.data.memory import free_bytes\n"
        "resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))\nprint(free_bytes())"
    )
    free = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 0 < free < 1e9


def test_bytes_for_people():
    assert memory.in_gigabytes(1_234_567_890_123) == "1,234.6 GB"
