"""Which tables `ssvi bench` measures."""

import json

import pytest
from click.testing import CliRunner

from ssvi import bench
from ssvi.bench.results import Benchmark, Conditions, ProfileRow
from ssvi.cli.bench import bench_command
from ssvi.comparison.page import between_markers
from ssvi.training.machine import Machine

CONDITIONS = Conditions("2026-01-02", 3, 128, Machine("a CPU", 2, "2.6", "3.11"), "x86_64", 2)


@pytest.fixture
def asked(monkeypatch):
    """The names that reach the benchmark, which measures nothing here; the process keeps its threads and allocator."""
    names = []

    def run(tables, turns, say):
        names.append(tables)
        yield Benchmark(CONDITIONS, profile=(ProfileRow("a step", 10.0, 0.1, {"rest": 10.0}),))

    monkeypatch.setattr(bench, "run", run)
    monkeypatch.setattr("ssvi.cli.bench.tune_malloc", lambda: True)
    monkeypatch.setattr("torch.set_num_threads", lambda threads: None)
    return names


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], tuple(bench.TABLES)),
        (["--profile"], ("profile",)),
        (["--small"], ("small",)),
        (["--profile", "--small"], ("profile", "small")),
        (["--only", "one_theta,memory"], ("one_theta", "memory")),
    ],
)
def test_the_tables_that_were_asked_for(asked, flags, names):
    result = CliRunner().invoke(bench_command, flags)
    assert result.exit_code == 0, result.output
    assert asked == [names]
    assert "| rest | 100.0% (10.0 ms) |" in result.output


def test_json_and_page(asked, tmp_path):
    result = CliRunner().invoke(bench_command, ["--profile", "--json", "--write", str(tmp_path / "page.md")])
    values = json.loads(result.stdout[result.stdout.index("{") :])
    assert values["profile"] == [{"what": "a step", "ms": 10.0, "overhead": 0.1, "parts": {"rest": 10.0}}]
    assert "## Where the time of a step goes" in (tmp_path / "page.md").read_text()


def test_a_page_keeps_the_sections_of_other_programs(asked, tmp_path):
    page, others = tmp_path / "page.md", between_markers("gpu-count", "## GPUs, counted\n\n183 launches")
    page.write_text(f"# An outdated page\n\n{others}\nan outdated table\n")
    for _ in range(2):
        CliRunner().invoke(bench_command, ["--profile", "--write", str(page)])
    text = page.read_text()
    assert text.endswith(others)
    assert text.count("183 launches") == text.count("## Where the time of a step goes") == 1
    assert "outdated" not in text


def test_a_table_that_does_not_exist_is_named(asked):
    result = CliRunner().invoke(bench_command, ["--only", "speed"])
    assert result.exit_code == 2
    assert "speed: take some of one_theta" in result.output
    assert asked == []


def test_a_page_that_cannot_be_written_is_an_error_before_anything_is_measured(asked, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    for page in (tmp_path, tmp_path / "file" / "page.md"):
        result = CliRunner().invoke(bench_command, ["--profile", "--write", str(page)])
        assert result.exit_code == 2
        assert "cannot be written" in result.output
    assert asked == []


def test_the_folder_of_the_page_is_made(asked, tmp_path):
    page = tmp_path / "new" / "page.md"
    result = CliRunner().invoke(bench_command, ["--profile", "--write", str(page)])
    assert result.exit_code == 0, result.output
    assert page.read_text().startswith("# ")
