"""Which runs a grid has, and that a folder with another recipe is refused."""

import pytest
from grids import planned, trained

from ssvi import comparison
from ssvi.training.run_folder import RunError


def test_once_per_density_only_where_the_method_aims_at_one(tmp_path):
    runs = planned(tmp_path, "ssvi", "vi", "group-vd", densities=(0.05, 0.1), seeds=(0, 7))
    assert [run.name for run in runs] == [
        "ssvi-0.05-seed0", "ssvi-0.05-seed7", "ssvi-0.1-seed0", "ssvi-0.1-seed7",
        "vi-seed0", "vi-seed7", "group-vd-seed0", "group-vd-seed7",
    ]  # fmt: skip
    assert [run.recipe.values.get("density") for run in runs[2:5]] == [0.1, 0.1, None]
    assert [run.name for run in planned(tmp_path, "ssvi", density=1e-3)] == ["ssvi-0.001-seed0"]


def test_another_recipe_in_the_folder_is_refused(tmp_path):
    trained(*planned(tmp_path, "ssvi", lr=0.1, prior_sigma=1.0, h0=0.5))
    with pytest.raises(
        RunError, match=r"epochs=1 \(now 2\), lr=0\.1 \(now 0\.2\): choose another folder with --out, or"
    ):
        comparison.refuse_changes(planned(tmp_path, "ssvi", epochs=2, lr=0.2, prior_sigma=1.0, h0=0.5))
