"""The JSON of a comparison: one flat dictionary per run, and mean and deviation per row."""

from grids import HAND_MADE, by_hand

from ssvi import comparison
from ssvi.comparison import FailedRun
from ssvi.training.records import to_plain

PLACE = {
    "run": "r1",
    "data": "digits",
    "method": "ssvi",
    "density": 0.05,
    "seed": 1,
    "unit": "weight",
    "varied": {},
    "course": "",
}
NUMBERS = [
    "examples", "samples", "accuracy", "nll", "brier", "ece", "marginal_calibration_error", "aurc", "networks",
    "weights", "live_weights", "sparsity", "sparsity_of_all", "disk_bytes", "memory_bytes", "memory_bytes_dense_vi",
    "training_flops", "training_flops_dense_vi", "inference_flops", "inference_flops_dense_vi", "training_seconds",
    "peak_memory_bytes", "sparsity_of_sparse_layers", "of_dense_vi",
]  # fmt: skip


def test_a_run_is_one_flat_dictionary():
    values = comparison.run_to_json(by_hand("ssvi", 0.05, 1, nll=0.25))
    assert list(values) == [*PLACE, *NUMBERS]
    assert values.items() >= PLACE.items()
    assert (values["sparsity"], values["sparsity_of_sparse_layers"]) == (0.5, 0.6)
    assert (values["nll"], values["peak_memory_bytes"]) == (0.25, None)


def test_a_run_that_failed_has_the_reason_in_place_of_numbers():
    values = comparison.run_to_json(FailedRun(by_hand("ssvi", 0.05, 1).place, "no memory"))
    assert values == PLACE | {"failed": "no memory"}


def test_a_row_has_the_numbers_that_its_runs_have():
    ssvi, dense = (to_plain(row.summary()) for row in comparison.rows(HAND_MADE))
    assert list(ssvi) == ["method", "density", "unit", "data", "seeds", "failed", "mean", "std", "varied"]
    assert list(ssvi["mean"]) == list(ssvi["std"]) == NUMBERS
    assert list(dense["mean"]) == [name for name in NUMBERS if name != "peak_memory_bytes"], "it was not recorded"
    assert set(dense["std"].values()) == {None}, "one seed has no deviation"
