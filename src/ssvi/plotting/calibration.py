"""The reliability diagram: is what is said with 80 % confidence right in 80 % of the cases?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssvi.plotting.charts import TALL, Axes
from ssvi.plotting.scale import Scale, percent
from ssvi.plotting.svg import Drawing, Series

ENOUGH = 10
"""Examples from which on a bin is drawn. With n of them the 95 % interval of the accuracy reaches up to 0.98 / sqrt(n) to
both sides: 31 points for 10 examples, and more than any gap worth a look for fewer."""


@dataclass(frozen=True)
class ReliabilityBins:
    """What the bins of the confidence hold; an empty bin has count 0, and its means are not read."""

    series: Series
    count: Sequence[float]
    confidence: Sequence[float | None]
    accuracy: Sequence[float | None]

    @property
    def left_out(self) -> int:
        """Examples in bins that have too few of them to be drawn."""
        return round(sum(count for count in self.count if count < ENOUGH))


def reliability(drawn: Sequence[ReliabilityBins]) -> Drawing:
    """Accuracy against confidence: a larger marker stands for more examples, its stem is the distance to the diagonal.

    Bins of fewer than `ENOUGH` examples are left out.
    """
    unit = Scale(0.0, 1.0, label=percent)
    axes = Axes(
        unit, unit, title="reliability diagram", x_label="confidence", y_label="accuracy", right=24, height=TALL
    )
    axes.guide([(0, 0), (1, 1)])
    axes.note("above: too cautious", 0.03, 0.93)
    axes.note("below: too confident", 0.97, 0.06, anchor="end")
    for bins in drawn:
        total = sum(bins.count)
        for count, confidence, accuracy in zip(bins.count, bins.confidence, bins.accuracy, strict=True):
            if count >= ENOUGH and confidence is not None and accuracy is not None:
                axes.whisker(bins.series, confidence, accuracy, confidence, "stem")
                axes.marker(bins.series, confidence, accuracy, 2.5 + 7 * (count / total) ** 0.5, "soft")
    return axes.drawing()
