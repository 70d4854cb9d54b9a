"""The numbers of the paper's tables, as printed. Its figures have none in the text: `items` has their claims.

Accuracy and sparsity are shares. "ECE" is what the paper calls so: the marginal calibration error (docs/differences.md). All
numbers are of ResNet-18 of width 64 after 200 epochs, means of three seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

CIFAR_10, CIFAR_100 = "CIFAR-10", "CIFAR-100"


@dataclass(frozen=True)
class PaperRow:
    """A row of Table 1 or 2; what a table does not have is None."""

    data: str
    method: str
    """The name that the method has in this package."""
    accuracy: float
    ece: float
    sparsity: float
    nll: float | None = None
    live_weights: float | None = None
    flops: float | None = None
    """Of the training."""
    of_dense: float | None = None
    """The same as a share of those of the dense BNN."""

    @property
    def density(self) -> float:
        """The share of the weights that live."""
        return round(1 - self.sparsity, 3)


TABLE_1 = (
    PaperRow(CIFAR_10, "vi", 0.9513, 0.004, 0.0, flops=1.1e17, of_dense=1.0),
    PaperRow(CIFAR_10, "ssvi-lrt", 0.9458, 0.005, 0.90, of_dense=0.10),
    PaperRow(CIFAR_10, "ssvi-lrt", 0.9369, 0.006, 0.95, of_dense=0.05),
    PaperRow(CIFAR_100, "vi", 0.7820, 0.0016, 0.0, flops=1.2e17, of_dense=1.0),
    PaperRow(CIFAR_100, "ssvi-lrt", 0.7581, 0.0017, 0.90, of_dense=0.10),
    PaperRow(CIFAR_100, "ssvi-lrt", 0.7383, 0.0018, 0.95, of_dense=0.05),
)

TABLE_2 = (
    PaperRow(CIFAR_10, "vd", 0.906, 0.009, 0.768, 0.298, 2.60e6, 67.1e15),
    PaperRow(CIFAR_10, "sbp", 0.901, 0.009, 0.811, 0.301, 2.12e6, 67.1e15),
    PaperRow(CIFAR_10, "aeb", 0.9184, 0.023, 0.900, 0.308, 1.2e6, 383.4e15),
    PaperRow(CIFAR_10, "mbnn", 0.9314, 0.008, 0.964, 0.227, 0.41e6, 22.8e15),
    PaperRow(CIFAR_10, "ssvi-lrt", 0.9374, 0.006, 0.950, 0.218, 0.56e6, 5.7e15),
    PaperRow(CIFAR_100, "vd", 0.600, 0.0060, 0.583, 1.977, 4.66e6, 67.1e15),
    PaperRow(CIFAR_100, "sbp", 0.623, 0.0053, 0.612, 1.834, 4.34e6, 67.1e15),
    PaperRow(CIFAR_100, "aeb", 0.7026, 0.0110, 0.900, 1.103, 1.2e6, 383.4e15),
    PaperRow(CIFAR_100, "mbnn", 0.7342, 0.0024, 0.878, 1.078, 1.37e6, 25.9e15),
    PaperRow(CIFAR_100, "ssvi-lrt", 0.7581, 0.0017, 0.900, 0.983, 1.12e6, 11.4e15),
)


def row_of(table: tuple[PaperRow, ...], data: str, method: str, density: float | None) -> PaperRow | None:
    """The row of a method; of several densities the one that was asked for. None where the paper has none."""
    rows = [row for row in table if (row.data, row.method) == (data, method)]
    return next((row for row in rows if len(rows) == 1 or row.density == density), None)


@dataclass(frozen=True)
class PaperOOD:
    """A cell pair of the table of out-of-distribution detection."""

    trained: str
    seen: str
    method: str
    auroc: float
    aupr: float


OOD = (
    PaperOOD(CIFAR_10, "cifar100", "mbnn", 0.84, 0.81),
    PaperOOD(CIFAR_10, "svhn", "mbnn", 0.89, 0.94),
    PaperOOD(CIFAR_100, "cifar10", "mbnn", 0.76, 0.72),
    PaperOOD(CIFAR_100, "svhn", "mbnn", 0.78, 0.88),
    PaperOOD(CIFAR_10, "cifar100", "ssvi-lrt", 0.86, 0.84),
    PaperOOD(CIFAR_10, "svhn", "ssvi-lrt", 0.93, 0.96),
    PaperOOD(CIFAR_100, "cifar10", "ssvi-lrt", 0.80, 0.77),
    PaperOOD(CIFAR_100, "svhn", "ssvi-lrt", 0.85, 0.91),
)

IOU_CRITERIA = ("abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs")
"""Criteria 1 to 5, in the order of the matrices."""

Matrix = tuple[tuple[float, ...], ...]


def _symmetric(*upper: tuple[float, ...]) -> Matrix:
    """The whole matrix from its rows above the diagonal of ones."""
    size = len(upper) + 1

    def entry(a: int, b: int) -> float:
        low, high = min(a, b), max(a, b)
        return 1.0 if a == b else upper[low][high - low - 1]

    return tuple(tuple(entry(a, b) for b in range(size)) for a in range(size))


IOU: dict[str, Matrix] = {
    "start": _symmetric((0.9995, 0.9122, 0.9981, 0.9122), (0.9118, 0.9985, 0.9118), (0.9118, 0.9996), (0.9118,)),
    "middle": _symmetric((0.9999, 0.7723, 0.8177, 0.7722), (0.7722, 0.8177, 0.7722), (0.6786, 0.9895), (0.6790,)),
    "end": _symmetric((0.9998, 0.1528, 0.0829, 0.1190), (0.1528, 0.0829, 0.1190), (0.0389, 0.8501), (0.0374,)),
}
"""Intersection over union of what two criteria would remove, at three moments of the training."""
