"""What a command prints."""

import json
from dataclasses import dataclass

from rich.console import Console

from ssvi.cli.tables import WIDE, grid, show, two_columns


@dataclass(frozen=True)
class Quality:
    accuracy: float
    by_class: tuple[float, ...]


def printed(table) -> list[str]:
    console = Console(width=60)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def test_json_of_a_record_of_plain_values_and_of_records_among_plain_values(capsys):
    record, plain = Quality(0.5, (0.25, 0.75)), {"accuracy": 0.5, "by_class": [0.25, 0.75]}
    for result, expected in [(record, plain), (plain, plain), ({"runs": [record]}, {"runs": [plain]})]:
        show(result, True, lambda: [])
        assert json.loads(capsys.readouterr().out) == expected


def test_people_see_the_tables_and_not_json(capsys):
    show({"a": 1}, False, lambda: ["a is 1", two_columns("numbers", {"a": 1})])
    said = capsys.readouterr().out
    assert said.startswith("a is 1\nnumbers")
    assert "{" not in said


def test_a_pipe_folds_nothing_that_fits_the_wide_table(capsys):
    long = "x" * (WIDE - 20)
    show(None, False, lambda: [grid("", ("name", "value"), [("a", long)])])
    assert long in capsys.readouterr().out


def test_a_grid_has_its_numbers_on_the_right():
    lines = printed(grid("title", ("name", "number"), [("a", "1"), ("bcd", "[b]2")]))
    assert lines[0].split() == ["title"]
    assert "│ a    │      1 │" in lines
    assert "│ bcd  │   [b]2 │" in lines  # brackets are text and no markup


def test_two_columns_show_values_as_they_are():
    assert "│ kernels │ [none] │" in printed(two_columns("", {"kernels": "[none]", "threads": 2}))
