"""The items: the tables and figures of the paper, each with what the paper says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssvi.reproduction import show_flops, show_iou, show_shifts, show_sweeps, show_tables
from ssvi.reproduction.results import SetupResults
from ssvi.reproduction.scales import Scale
from ssvi.reproduction.shown import Shown

TEST_IMAGES = 10_000
"""Of the larger data sets."""

Show = Callable[[Sequence[SetupResults], Scale], Shown]


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper."""

    name: str
    where: str
    """Where it stands in the paper."""
    title: str
    claim: str
    """What the paper says, in one sentence."""
    show: Show
    """Makes tables, plots and verdicts of the results of its runs."""
    needs_ood: bool = False
    """Whether its runs are evaluated on other data sets."""
    needs_corruption: bool = False
    """Whether its runs are evaluated on corrupted images."""

    def command(self, scale: Scale) -> str:
        """What repeats this item alone."""
        return f"ssvi reproduce {self.name} --scale {scale.name}"

    def more_images(self, scale: Scale) -> int:
        """How many images its runs predict, about, beyond their test images."""
        corrupted = 76 * (scale.corrupted or TEST_IMAGES) if self.needs_corruption else 0
        return corrupted + (1 + len(next(iter(scale.ood.values())))) * TEST_IMAGES * self.needs_ood


ITEMS = {
    item.name: item
    for item in (
        Item(
            "table-1", "Table 1", "Against dense BNNs",
            "Sparse subspaces cost 10 to 20 times less training and memory than dense VI, at under 2 points of accuracy "
            "and 0.002 of calibration error (CIFAR-10, 95 % sparse).",
            show_tables.table_1,
        ),
        Item(
            "table-2", "Table 2", "Against sparse BNNs",
            "SSVI has the best accuracy, loss and calibration error of all sparse BNNs, and the lowest cost.",
            show_tables.table_2,
        ),
        Item(
            "density", "Figure 2, left", "Accuracy over sparsity",
            "From 50 % to 1 % density SSVI loses less accuracy than RigL.",
            show_sweeps.density,
        ),
        Item(
            "sigma0", "Figure 2, right", "The start of sigma",
            "SSVI hardly depends on the start of sigma; dense VI breaks down as it grows from 0.001 to 0.01.",
            show_sweeps.sigma0,
        ),
        Item(
            "removal", "Figure 2, right", "Removal criteria",
            "Criterion 4, SNR(|theta|), has the best accuracy of the six.",
            show_sweeps.removal,
        ),
        Item(
            "addition", "Figure 3, left", "Addition criteria",
            "Scores from one batch are as good as those from several, and as those at the posterior mean.",
            show_sweeps.addition,
        ),
        Item(
            "fresh", "Figure 3, right", "Sigma of fresh weights",
            "The mean of the other sigma is as good as the best small value, and needs no setting.",
            show_sweeps.fresh,
        ),
        Item(
            "iou", "Table 4 and Figure 5", "Do the criteria choose the same weights?",
            "The criteria agree at the start and drift apart; SNR(|theta|) ends far from SNR(theta).",
            show_iou.iou,
        ),
        Item(
            "ood", "Table 3", "Out of distribution",
            "SSVI tells images of other data sets apart better than mBNN, at equal sparsity.",
            show_shifts.ood, needs_ood=True,
        ),
        Item(
            "corrupt", "Figure 4", "Corrupted images",
            "Under all severities of 15 corruptions SSVI is better than mBNN in every metric.",
            show_shifts.corrupt, needs_corruption=True,
        ),
        Item(
            "flops", "Tables 1 and 2, last columns", "Training FLOPs",
            "SSVI takes a tenth or a twentieth of the training FLOPs of dense VI, and the least of all sparse BNNs.",
            show_flops.flops_item,
        ),
        Item(
            "posteriors", "Section 3, a remark", "Other posteriors",
            "The framework holds for other mean-field families than the Gaussian.",
            show_sweeps.posteriors,
        ),
    )
}  # fmt: skip
"""By name, in the order of the paper."""
