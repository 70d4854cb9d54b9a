"""Other data sets and corrupted images: what is kept in run folders, and the verdicts."""

from dataclasses import replace
from pathlib import Path

import pytest
from grids import by_hand, planned, trained

from ssvi.comparison import rows
from ssvi.evaluation import FinishedRun
from ssvi.evaluation.results import CorruptionResult, Estimate, Histogram, InsideOutside, OODResult
from ssvi.reproduction import shifts, show_shifts
from ssvi.reproduction.results import SetupResults
from ssvi.reproduction.scales import CIFAR, HOURS
from ssvi.reproduction.verdicts import CANNOT, NOT_REPEATED, REPEATED


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    [one] = planned(tmp_path_factory.mktemp("runs"), "ssvi")
    return trained(one).path


def test_what_is_missing_is_evaluated_once(run, monkeypatch):
    shifts.evaluate_missing_ood([run], ("noise",), 2, None)
    kept = shifts.ood_result(FinishedRun(run), "noise", 2)
    assert (kept.data, kept.samples) == ("noise", 2)
    assert shifts.ood_result(FinishedRun(run), "noise", 3) is None, "other samples, another result"
    monkeypatch.setattr(shifts, "evaluate_ood", lambda *_: pytest.fail("it is there already"))
    shifts.evaluate_missing_ood([run], ("noise",), 2, None)


def test_corruption_is_kept_for_so_many_images(run, monkeypatch):
    made = corruption_result(0.5)
    monkeypatch.setattr(shifts, "evaluate_corruption", lambda *_, images, **__: replace(made, images=images))
    shifts.evaluate_missing_corruption([run], 20, 2, None)
    assert shifts.corruption_result(FinishedRun(run), 20, 2).images == 20
    assert shifts.corruption_result(FinishedRun(run), 30, 2) is None
    assert shifts.corruption_result(FinishedRun(run), None, 2) is not None


def ood_result(value: float) -> OODResult:
    rankings = {name: Estimate(value) for name in ("auroc", "aupr", "fpr_at_95_tpr")}
    return OODResult("svhn", 2, 0, 10, 10, {"entropy": rankings}, InsideOutside(0, 1), Histogram([0, 1], [1], [1]))


def corruption_result(accuracy: float) -> CorruptionResult:
    numbers = {"accuracy": accuracy, "nll": 1 - accuracy, "marginal_calibration_error": 1 - accuracy}
    severities = [{name: Estimate(value) for name, value in numbers.items()} for _ in range(5)]
    return CorruptionResult("cifar10", "generated, seed 0", 1000, 2, 0, numbers, {}, severities)


def by_name(values: dict[str, float], make):
    """A function in place of that which reads results: the number of a method, and a little more for each seed."""

    def read(run: str, *_):
        name, _, seed = run.rpartition("-")
        return make(values[name] + 0.001 * int(seed)) if name in values else None

    return read


@pytest.fixture
def results(monkeypatch) -> list[SetupResults]:
    runs = [
        by_hand(method, density, seed) for method, density in (("mbnn", None), ("ssvi-lrt", 0.05)) for seed in range(3)
    ]
    runs = [replace(run, place=replace(run.place, run=f"{run.place.method}-{run.place.seed}")) for run in runs]
    monkeypatch.setattr(show_shifts, "FinishedRun", lambda path: path)
    return [SetupResults(CIFAR, tuple(planned(Path("nowhere"), "ssvi")), tuple(rows(runs)))]


def test_ood_is_a_verdict_for_each_data_set_and_ranking(results, monkeypatch):
    monkeypatch.setattr(show_shifts, "ood_result", by_name({"mbnn": 0.8, "ssvi-lrt": 0.9}, ood_result))
    shown = show_shifts.ood(results, HOURS)
    assert [verdict.outcome for verdict in shown.verdicts] == [REPEATED] * 4
    assert "digits against svhn" in shown.verdicts[2].claim
    assert "| SSVI, LRT (50% sparse) | 0.93 | 0.96 | 0.901 ± 0.001" in shown.tables[1].table.markdown()
    monkeypatch.setattr(show_shifts, "ood_result", by_name({"mbnn": 0.9, "ssvi-lrt": 0.9}, ood_result))
    assert {verdict.outcome for verdict in show_shifts.ood(results, HOURS).verdicts} == {NOT_REPEATED}
    monkeypatch.setattr(show_shifts, "ood_result", by_name({"mbnn": 0.9}, ood_result))
    assert {verdict.outcome for verdict in show_shifts.ood(results, HOURS).verdicts} == {CANNOT}


def test_corrupt_asks_for_every_severity(results, monkeypatch):
    monkeypatch.setattr(show_shifts, "corruption_result", by_name({"mbnn": 0.8, "ssvi-lrt": 0.9}, corruption_result))
    shown = show_shifts.corrupt(results, HOURS)
    assert [verdict.outcome for verdict in shown.verdicts] == [REPEATED] * 3
    assert (len(shown.tables), len(shown.plots)) == (3, 3)
    assert "1,000 of the test set" in shown.notes[0]

    def worse_at_the_end(accuracy: float) -> CorruptionResult:
        made = corruption_result(accuracy)
        return replace(made, severities=[*made.severities[:4], corruption_result(0.8).severities[0]])

    monkeypatch.setattr(show_shifts, "corruption_result", by_name({"mbnn": 0.8, "ssvi-lrt": 0.9}, worse_at_the_end))
    verdict = show_shifts.corrupt(results, HOURS).verdicts[0]
    assert verdict.outcome == NOT_REPEATED
    assert verdict.why.startswith("better at severities 1, 2, 3, 4;")
    monkeypatch.setattr(show_shifts, "corruption_result", by_name({}, corruption_result))
    assert {verdict.outcome for verdict in show_shifts.corrupt(results, HOURS).verdicts} == {CANNOT}
