"""The runs of a grid are looked at before the first of them begins."""

import pytest

from ssvi.comparison import check, check_runs, plan
from ssvi.training.recipe import Recipe
from ssvi.training.run_folder import RunError

SMALL = Recipe().replace(width=2, epochs=1)


def test_the_first_run_that_cannot_be_trained_is_named_and_nothing_is_made(tmp_path):
    runs = plan([SMALL, SMALL.replace(method="vd", keep_dense=("conv7",))], None, [0, 1], tmp_path / "grid")
    with pytest.raises(RunError, match="vd-seed0 cannot be trained: keep_dense='conv7' matches no"):
        check_runs(runs, None)
    assert list(tmp_path.iterdir()) == []


def test_one_run_of_each_method_and_density_is_looked_at_unless_it_has_begun(tmp_path, monkeypatch):
    looked_at = []
    monkeypatch.setattr(check, "check", lambda recipe, data_dir: looked_at.append(recipe))
    runs = plan([SMALL, SMALL.replace(method="vi")], [0.1, 0.2], [4, 5], tmp_path)
    check_runs(runs, None)
    assert {(r.method, r.values.get("density"), r.seed) for r in looked_at} == {
        ("ssvi", 0.1, 4), ("ssvi", 0.2, 4), ("vi", None, 4),
    }  # fmt: skip
    assert len(looked_at) == 3
    for run in runs:
        run.path.mkdir()
        (run.path / "recipe.toml").write_text(run.recipe.to_toml())
    looked_at.clear()
    check_runs(runs, None)
    assert looked_at == []


def test_each_data_set_is_looked_at(tmp_path, monkeypatch):
    looked_at = []
    monkeypatch.setattr(check, "check", lambda recipe, data_dir: looked_at.append(recipe.data))
    runs = plan([SMALL], [0.1], [0], tmp_path / "a") + plan([SMALL.replace(data="mnist")], [0.1], [0], tmp_path / "b")
    check_runs(runs, None)
    assert sorted(looked_at) == ["digits", "mnist"]
