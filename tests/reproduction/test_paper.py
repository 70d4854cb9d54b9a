"""The numbers of the paper: consistent with each other, and with its sentences."""

import pytest

from ssvi.evaluation.recorded_iou import mean_of_pairs
from ssvi.reproduction import paper
from ssvi.reproduction.items import ITEMS
from ssvi.reproduction.show_tables import LIMITS


def test_rows_are_found_by_method_and_where_there_are_several_by_density():
    assert paper.row_of(paper.TABLE_1, "CIFAR-10", "ssvi-lrt", 0.05).accuracy == 0.9369
    assert paper.row_of(paper.TABLE_1, "CIFAR-100", "ssvi-lrt", 0.1).ece == 0.0017
    assert paper.row_of(paper.TABLE_2, "CIFAR-10", "mbnn", None).live_weights == 0.41e6
    assert paper.row_of(paper.TABLE_2, "CIFAR-100", "aeb", 0.1).nll == 1.103
    assert paper.row_of(paper.TABLE_2, "CIFAR-10", "rigl", 0.05) is None


def test_the_printed_numbers_keep_the_limits_of_the_text():
    for data, (density, loss, rise) in LIMITS.items():
        dense = paper.row_of(paper.TABLE_1, data, "vi", None)
        sparse = paper.row_of(paper.TABLE_1, data, "ssvi-lrt", density)
        assert dense.accuracy - sparse.accuracy < loss
        assert sparse.ece - dense.ece == pytest.approx(rise, abs=1e-9)


@pytest.mark.parametrize("data", ["CIFAR-10", "CIFAR-100"])
def test_in_table_2_ssvi_is_best_in_everything(data):
    rows = [row for row in paper.TABLE_2 if row.data == data]
    own = next(row for row in rows if row.method == "ssvi-lrt")
    assert len(rows) == 5
    assert own.accuracy == max(row.accuracy for row in rows)
    assert (own.nll, own.ece, own.flops) == tuple(
        min(getattr(row, key) for row in rows) for key in ("nll", "ece", "flops")
    )


def test_live_weights_are_the_density_times_those_of_resnet18():
    for row in paper.TABLE_2:
        assert row.live_weights == pytest.approx((1 - row.sparsity) * 11.17e6, rel=0.09), row


def test_in_the_table_of_ood_ssvi_is_ahead_everywhere():
    by = {(row.trained, row.seen, row.method): row for row in paper.OOD}
    assert len(by) == 8
    for (trained, seen, method), row in by.items():
        other = by[trained, seen, "mbnn" if method == "ssvi-lrt" else "ssvi-lrt"]
        sign = 1 if method == "ssvi-lrt" else -1
        assert sign * (row.auroc - other.auroc) > 0
        assert sign * (row.aupr - other.aupr) > 0


def test_the_matrices_of_iou_are_symmetric_and_drift_apart():
    for matrix in paper.IOU.values():
        assert len(matrix) == len(paper.IOU_CRITERIA)
        assert all(matrix[a][b] == matrix[b][a] and matrix[a][a] == 1 for a in range(5) for b in range(5))
    assert paper.IOU["end"][1][3] == 0.0829
    assert paper.IOU["middle"][2][4] == 0.9895
    means = [mean_of_pairs(matrix) for matrix in paper.IOU.values()]
    assert means == sorted(means, reverse=True)


def test_every_item_says_where_it_stands_and_what_the_paper_claims():
    assert all(item.where and item.title and item.claim.endswith(".") for item in ITEMS.values())
