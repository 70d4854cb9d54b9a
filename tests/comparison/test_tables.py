"""Mean and standard deviation over the seeds, in the cells of the tables and unrounded."""

from dataclasses import replace

import pytest
from grids import HAND_MADE

from ssvi import comparison
from ssvi.training import recipe_files
from ssvi.training.length import course


def test_mean_and_standard_deviation_by_hand():
    tables = {title: [dict(zip(head, row, strict=True)) for row in rows]
              for title, head, rows in comparison.tables(comparison.rows(HAND_MADE))}  # fmt: skip
    one, two, costs = tables.values()
    # 90, 92, 97: mean 93, squares 9 + 1 + 16 = 26, 26 / 2 = 13, root 3.61
    assert (one[0]["model"], one[0]["accuracy"], one[0]["seeds"]) == ("SSVI, density 0.05", "93.00% ± 3.61%", "3")
    assert (one[1]["accuracy"], one[1]["ECE (Guo, top label)"]) == ("95.00%", "0.0123")
    assert (one[0]["unit"], one[1]["unit"]) == ("weight", "-")
    assert one[0]["marginal calibration error (the paper's ECE)"] == "0.5000 ± 0.0000"
    assert [row["loss (NLL)"] for row in two] == ["0.4000 ± 0.2000"]
    assert two[0]["training FLOPs"] == "2k"
    assert (costs[0]["wall-clock of training"], costs[0]["peak memory (bytes)"]) == ("3.0 s ± 2.6 s", "4G ± 1G")
    assert costs[1]["peak memory (bytes)"] == "-"
    summary = comparison.rows(HAND_MADE)[0].summary()
    assert summary.mean["accuracy"] == pytest.approx(0.93, abs=1e-15)
    assert summary.std["accuracy"] == pytest.approx(0.0013**0.5, abs=1e-15)


def test_a_debiased_error_that_no_seed_tells_from_0_is_said_to_be_so():
    def cell(*upper_ends):
        runs = [replace(run, not_above=end) for run, end in zip(HAND_MADE[:3], upper_ends, strict=True)]
        _, head, rows = comparison.tables(comparison.rows(runs))[0]
        return dict(zip(head, rows[0], strict=True))["marginal calibration error (the paper's ECE)"]

    assert cell(0.51, 0.52, 0.53) == "0.5000 ± 0.0000; not distinguishable from 0 (95 %: below 0.5300)"
    assert cell(0.51, None, 0.53) == "0.5000 ± 0.0000"


def test_chains_and_starts_are_stated():
    recipe = recipe_files.load("digits", "aeb").replace(epochs=30, members=5, burn_in=0.5, temperature=1e-3)
    text = "a chain of 30 epochs: 15 of burn-in, then 5 states, 3 epochs apart, at temperature 0.001"
    assert course(recipe) == text
    warm = recipe.replace(warm_start=0.5, members=1)
    assert course(warm) == (
        "15 epochs of plain training first (learning rate 0.1); "
        "a chain of 15 epochs: 7 of burn-in, then 1 state, at temperature 0.001"
    )
    assert course(recipe_files.load("digits", "rigl")) == ""
    runs = [replace(run, place=replace(run.place, course=text if i else "")) for i, run in enumerate(HAND_MADE[2:4])]
    *_, (title, head, rows) = comparison.tables(comparison.rows(runs))
    assert (title, head, len(rows)) == ("Chains and starts", ["algorithm", "what the epochs are spent on"], 1)
    assert rows[0][1] == text
