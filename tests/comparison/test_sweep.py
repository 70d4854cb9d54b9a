"""A number of runs against a setting or the epochs: lines, means, deviations, and the drawing."""

import math
from pathlib import Path

import pytest

from ssvi.comparison.sweep import Source, SweepLine, SweepPoint, run_folders, sweep
from ssvi.comparison.sweep_plot import drawing
from ssvi.training.progress import EpochLine, Validation
from ssvi.training.run_folder import RunError


def epoch(number: int, nll: float) -> EpochLine:
    return EpochLine(
        epoch=number, step=10, loss=1.0, nll=1.0, kl=0.0, beta=1.0, rate=0.1, lr=0.1, moved=0, images_per_second=1.0,
        seconds=1.0, validation=Validation(0.5, nll, 0.1),
    )  # fmt: skip


def source(method: str, seed: int, nll: float, **settings: object) -> Source:
    log = (epoch(0, 2 * nll), epoch(1, nll))
    return Source(Path(f"{method}{seed}"), {"method": method, "seed": seed} | settings, {"nll": nll}, log)


SOURCES = [
    source("ssvi", 0, 0.2, rate=0.3), source("ssvi", 1, 0.4, rate=0.3), source("ssvi", 0, 0.1, rate=0.1),
    source("rigl", 0, 0.5, rate=0.1), source("vi", 0, 0.6),
]  # fmt: skip


def test_a_line_for_each_method_with_mean_and_deviation_over_the_seeds():
    lines = sweep(SOURCES[:4], "rate", "nll")
    assert lines[0] == SweepLine(
        "SSVI", (SweepPoint(0.1, 0.1, None, 1), SweepPoint(0.3, pytest.approx(0.3), pytest.approx(0.02**0.5), 2))
    )
    assert lines[1].label == "RigL"


def test_against_the_epochs_every_epoch_is_a_point():
    (line,) = sweep(SOURCES[:2], "epoch", "val_nll")
    assert [(point.x, point.mean, point.seeds) for point in line.points] == [
        (1, pytest.approx(0.6), 2), (2, pytest.approx(0.3), 2),
    ]  # fmt: skip


def test_lines_are_what_differs_or_what_is_asked_for():
    assert [line.label for line in sweep(SOURCES[:4], "epoch", "nll")] == [
        "SSVI, rate 0.3",
        "SSVI, rate 0.1",
        "RigL, rate 0.1",
    ]
    assert [line.label for line in sweep(SOURCES[:4], "epoch", "nll", by=["rate"])] == ["rate 0.3", "rate 0.1"]
    assert [line.label for line in sweep(SOURCES[:1], "rate", "nll")] == ["all runs"]


def outcome(method: str, seed: int, sparsity: float, nll: float, **settings: object) -> Source:
    return Source(Path("x"), {"method": method, "seed": seed} | settings, {"nll": nll, "sparsity": sparsity}, ())


def test_against_a_number_that_comes_out_each_method_has_a_curve():
    """The seeds of one beta are one point, at the mean of the sparsities that came out."""
    sources = [
        outcome("vd", 0, 0.96, 0.3, beta_max=1.0), outcome("vd", 1, 0.98, 0.5, beta_max=1.0),
        outcome("vd", 0, 0.5, 0.1, beta_max=0.1), outcome("ssvi", 0, 0.95, 0.2, density=0.05),
        outcome("ssvi", 0, 0.8, 0.15, density=0.2),
    ]  # fmt: skip
    vd, ssvi = sweep(sources, "sparsity", "nll")
    assert vd == SweepLine(
        "VD",
        (
            SweepPoint(0.5, 0.1, None, 1),
            SweepPoint(pytest.approx(0.97), pytest.approx(0.4), pytest.approx(0.02**0.5), 2),
        ),
    )
    assert [(point.x, point.mean) for point in ssvi.points] == [(0.8, 0.15), (0.95, 0.2)]
    assert drawing([vd, ssvi], "sparsity", "nll").file().count('class="line') == 2


def test_a_run_without_the_setting_on_the_axis_has_no_point():
    lines = sweep(SOURCES, "rate", "nll")
    assert [line.label for line in lines] == ["SSVI", "RigL"], "dense VI has no rate"


def test_a_word_on_the_axis_makes_rows():
    lines = sweep(SOURCES, "method", "nll", by=["rate"])
    assert [point.x for point in lines[0].points] == ["ssvi"]
    picture = drawing(lines, "method", "nll").file()
    assert picture.count('class="whisker') == sum(len(line.points) for line in lines)


def test_the_drawing_has_a_line_a_band_and_a_name_for_each_series():
    lines = [
        SweepLine("SSVI", tuple(SweepPoint(x, 1 / x, 0.1, 3) for x in (1.0, 2.0, 4.0))),
        SweepLine("RigL", tuple(SweepPoint(x, 2 / x, None, 1) for x in (1.0, 2.0, 4.0))),
    ]
    picture = drawing(lines, "rate", "nll", log_x=True).file()
    assert picture.startswith("<svg")
    assert "xmlns" in picture
    assert picture.count('class="line') == 2
    assert picture.count('class="band') == 1
    assert "RigL" in picture


def test_what_cannot_be_drawn_is_said():
    many = [SweepLine(str(i), (SweepPoint(1.0, i, None, 1),)) for i in range(7)]
    with pytest.raises(RunError, match="7 lines, and a drawing holds 6: choose what makes a line with --by"):
        drawing(many, "rate", "nll")
    with pytest.raises(RunError, match="--log-x: rate has 0, which has no logarithm"):
        drawing([SweepLine("a", (SweepPoint(0.0, 1.0, None, 1),))], "rate", "nll", log_x=True)


@pytest.mark.parametrize(
    ("x", "y", "by", "message"),
    [
        ("ratte", "nll", [], r"--x ratte: did you mean rate\?"),
        ("rate", "nlll", [], r"--y nlll: did you mean nll\?"),
        ("rate", "val_accuracy", [], "--y val_accuracy: take one of nll"),
        ("epoch", "val_accuraccy", [], r"did you mean val_accuracy\?"),
        ("rate", "nll", ["methd"], r"--by methd: did you mean method\?"),
    ],
)
def test_unknown_names_are_told_with_the_nearest(x, y, by, message):
    with pytest.raises(RunError, match=message):
        sweep(SOURCES, x, y, by)


def test_no_point_without_the_number():
    lines = sweep([*SOURCES[:2], Source(Path("x"), {"method": "vi", "seed": 0}, {}, ())], "method", "nll")
    assert [point.x for line in lines for point in line.points] == ["ssvi"]
    assert math.isclose(lines[0].points[0].mean, 0.3)


def test_run_folders_are_found_one_level_down(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.toml").touch()
    assert run_folders([tmp_path, tmp_path / "a"]) == [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(RunError, match="no run folder"):
        run_folders([tmp_path / "c"])
