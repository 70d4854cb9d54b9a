"""A section of a Markdown page with the tables."""

import pytest
from grids import HAND_MADE

from ssvi import comparison
from ssvi.comparison import Context
from ssvi.training.machine import Machine
from ssvi.training.run_folder import RunError

CONTEXT = Context(
    command="ssvi compare digits",
    date="2026-01-01",
    machine=Machine(ssvi="1", torch="2", python="3", system="S", processor="P", cores=2, threads=1),
    data="digits",
    model="lenet",
    epochs={"ssvi": 1},
    samples=5,
    jobs=2,
    recipe="digits",
    seeds=[0, 1, 2],
)


def test_a_section_is_replaced_between_its_markers(tmp_path):
    page, text = tmp_path / "page.md", comparison.section("digits", CONTEXT, comparison.rows(HAND_MADE))
    assert "| digits | SSVI, density 0.05 | 93.00% ± 3.61% |" in text
    assert "seeds 0, 1, 2" in text
    page.write_text("# Results\n\n<!-- compare digits -->\nold\n<!-- end compare digits -->\n\nThe end.\n")
    for _ in range(2):
        comparison.write_section(page, "digits", text)
        assert page.read_text() == f"# Results\n\n{text}\nThe end.\n"
    other = comparison.section("cifar10", CONTEXT, comparison.rows(HAND_MADE))
    for _ in range(2):
        comparison.write_section(page, "cifar10", other)
        assert page.read_text() == f"# Results\n\n{text}\nThe end.\n\n{other}"
    page.write_text("<!-- compare digits -->\n")
    with pytest.raises(RunError, match="mend the page"):
        comparison.write_section(page, "digits", text)


@pytest.mark.parametrize("data_dir", [["--data-dir", "/home/me/data"], ["--data-dir=/home/me/data"], []])
def test_a_page_does_not_tell_where_a_machine_keeps_its_data(data_dir):
    words = ["ssvi", "compare", "digits", *data_dir, "--write", "my results.md"]
    assert comparison.command_line(words) == "ssvi compare digits --write 'my results.md'"
