"""Which runs the items have at each scale: their folders, what they share, and their recipes."""

from pathlib import Path

import pytest

from ssvi.comparison import Variation
from ssvi.methods import NAMES
from ssvi.reproduction.grids import Grid, by_setup, each_once, planned
from ssvi.reproduction.items import ITEMS
from ssvi.reproduction.scales import CIFAR, DIGITS, FASHION, PAPER_10, PAPERS_METHOD, SCALES
from ssvi.reproduction.setups import Setup
from ssvi.training.recipe_files import load

OUT = Path("out")


def names(scale: str, item: str) -> set[str]:
    return {run.name for grid in SCALES[scale].grids[item] for run in planned(grid, (0, 1), OUT)}


@pytest.mark.parametrize("scale", SCALES)
def test_every_item_exists_at_every_scale_and_has_the_method_of_the_paper(scale):
    assert set(SCALES[scale].grids) == set(ITEMS)
    for item, grids in SCALES[scale].grids.items():
        methods = {method for grid in grids for method in grid.methods}
        assert methods <= set(NAMES)
        assert PAPERS_METHOD in methods or item == "flops"


@pytest.mark.parametrize("scale", SCALES)
def test_items_share_their_runs(scale):
    assert names(scale, "ood") <= names(scale, "table-2")
    assert names(scale, "corrupt") <= names(scale, "table-1") | names(scale, "table-2")
    assert names(scale, "density") & names(scale, "table-1")


def test_a_setting_with_its_usual_value_is_the_run_without_it():
    sweep = Grid(FASHION, ("ssvi-lrt", "vi"), (0.1,), (Variation("sigma_init", (0.01, 0.1)),))
    runs = planned(sweep, (0,), OUT)
    assert [run.name for run in runs] == [
        "fashion-ssvi-lrt-0.1-seed0", "fashion-ssvi-lrt-0.1-sigma_init=0.1-seed0",
        "fashion-vi-seed0", "fashion-vi-sigma_init=0.1-seed0",
    ]  # fmt: skip
    assert runs[0].varied == (("sigma_init", 0.01),), "the rows of the item have it all the same"
    assert [run.recipe.values["sigma_init"] for run in runs] == [0.01, 0.1, 0.01, 0.1]


def test_the_same_folder_means_the_same_recipe():
    """Whatever the item: otherwise the second one would find a run of another recipe, and refuse it."""
    for scale in SCALES.values():
        recipes = {}
        for grids in scale.grids.values():
            for grid in grids:
                for run in planned(grid, (0,), OUT):
                    assert recipes.setdefault(run.path, run.recipe) == run.recipe, run.name


def test_each_run_once_and_setups_apart():
    grids = (Grid(DIGITS, ("vi",)), Grid(FASHION, ("vi",)), Grid(DIGITS, ("vi", "ssvi"), (0.05,)))
    runs = by_setup(grids, (0,), OUT)
    assert [run.name for run in runs[DIGITS]] == ["digits-vi-seed0", "digits-vi-seed0", "digits-ssvi-0.05-seed0"]
    assert [run.name for run in each_once(runs[DIGITS])] == ["digits-vi-seed0", "digits-ssvi-0.05-seed0"], (
        "at its first place"
    )
    assert [run.name for run in runs[FASHION]] == ["fashion-vi-seed0"]


def test_changes_and_the_settings_of_authors():
    setup = Setup("short", "cifar10", {"epochs": 6, "members": 2}, by_authors=("mbnn",))
    mbnn = setup.recipe_of("mbnn").values
    assert (mbnn["lr"], mbnn["temperature"], mbnn["every"]) == (0.5, 2e-5, 10), "what its authors train CIFAR with"
    assert (mbnn["epochs"], mbnn["members"]) == (6, 2)
    assert setup.recipe_of("rigl").values["epochs"] == 6
    assert {each.recipe_of("rigl").values["examples"] for each in (FASHION, CIFAR)} == {6000}


def test_the_scale_of_the_paper_has_its_network_epochs_and_recipe():
    ours, theirs = PAPER_10.recipe_of("ssvi-lrt"), load("cifar10-paper")
    assert ours == theirs
    assert (ours.epochs, ours.batch_size, ours.lr, ours.width) == (200, 128, 0.01, 0)
    assert PAPER_10.recipe_of("vi").values["beta_max"] == theirs.values["beta_max"]
    assert PAPER_10.recipe_of("ssvi") == load("cifar10", "ssvi"), "natural gradients have our own recipe"
    assert {PAPER_10.recipe_of(method).epochs for method in ("vd", "sbp", "aeb", "mbnn", "rigl")} == {200}
