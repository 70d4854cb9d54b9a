"""What is trained for each item at each scale: data, so that it can be read as a table.

Items at one scale share setups, and with them run folders: table-2 trains nothing again that table-1 has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ssvi.comparison import Variation
from ssvi.reproduction.grids import Grid
from ssvi.reproduction.paper import CIFAR_100
from ssvi.reproduction.setups import Setup

PAPERS_METHOD = "ssvi-lrt"
"""Which method of the package is the algorithm of the paper."""
OURS = "ssvi"
"""The same support, trained by natural gradients: it stands beside the paper's where it is cheap."""

BOTH = (PAPERS_METHOD, OURS)
SPARSE_BNNS = ("vd", "group-vd", "sbp", "aeb", "mbnn")
TABLE_DENSITIES = (0.1, 0.05)
DENSITIES = (0.5, 0.1, 0.05, 0.02, 0.01)
ABLATED = (0.1,)
"""The density of the ablations, that of the paper's figures."""

SIGMAS = Variation("sigma_init", (1e-4, 1e-3, 1e-2, 3e-2, 1e-1))
REMOVAL = Variation(
    "removal", ("abs_mu", "snr", "mean_abs", "snr_abs", "mean_exp_abs", "snr_exp_abs", "snr_abs_textbook")
)
ADDITION = Variation("addition", ("sample", "mean"))
MC_STEPS = Variation("mc_steps", (1, 4, 16))
FRESH = Variation("fresh_sigma", ("mean", 1e-4, 1e-3, 1e-2))
POSTERIOR = Variation("posterior", ("gaussian", "laplace", "student-t"))
IOU = Variation("record_iou", (True,))


@dataclass(frozen=True)
class Scale:
    """One size of the whole reproduction."""

    name: str
    title: str
    grids: Mapping[str, tuple[Grid, ...]] = field(hash=False)
    """The runs of each item; an item that is not here does not exist at this scale."""
    ood: Mapping[str, tuple[str, ...]] = field(hash=False)
    """By setup: the data sets that its networks were not trained on."""
    corrupted: int | None
    """Test images that are corrupted; None: all."""
    like_paper: bool = False
    """Whether data, network and epochs are those of the paper, so that numbers can be compared with its own."""


def _table_1(setup: Setup) -> tuple[Grid, ...]:
    return Grid(setup, ("vi",)), Grid(setup, BOTH, TABLE_DENSITIES)


def _table_2(setup: Setup, density: float) -> tuple[Grid, ...]:
    return Grid(setup, SPARSE_BNNS, (density,)), Grid(setup, BOTH, (density,))


def _against_mbnn(setup: Setup, density: float) -> tuple[Grid, ...]:
    return Grid(setup, ("mbnn",)), Grid(setup, BOTH, (density,))


def _corrupt(setup: Setup, density: float) -> tuple[Grid, ...]:
    return Grid(setup, ("vi", "mbnn")), Grid(setup, BOTH, (density,))


def _density(setup: Setup) -> tuple[Grid, ...]:
    return (Grid(setup, ("rigl", *BOTH), DENSITIES),)


def _sweeps(setup: Setup) -> dict[str, tuple[Grid, ...]]:
    """The ablations of the paper, by its own method."""
    own = (PAPERS_METHOD,)
    return {
        "sigma0": (Grid(setup, (PAPERS_METHOD, "vi"), ABLATED, (SIGMAS,)),),
        "removal": (Grid(setup, own, ABLATED, (REMOVAL,)),),
        "addition": (Grid(setup, own, ABLATED, (ADDITION,)), Grid(setup, own, ABLATED, (MC_STEPS,))),
        "fresh": (Grid(setup, own, ABLATED, (FRESH,)),),
        "iou": (Grid(setup, own, ABLATED, (IOU,)),),
        "posteriors": (Grid(setup, own, ABLATED, (POSTERIOR,)),),
    }


DIGITS = Setup("digits", "reproduce-digits")
FASHION = Setup("fashion", "reproduce-fashion")
"""Few images and many epochs: curves over training have points, and a search for every method takes no longer than the
runs themselves."""

MINUTES = Scale(
    "minutes",
    "digits and Fashion-MNIST, a narrow lenet; about an hour for all items on two cores",
    {
        "table-1": (*_table_1(DIGITS), *_table_1(FASHION)),
        "table-2": (*_table_2(DIGITS, 0.05), *_table_2(FASHION, 0.05)),
        "density": _density(FASHION),
        **_sweeps(FASHION),
        "ood": (*_against_mbnn(DIGITS, 0.05), *_against_mbnn(FASHION, 0.05)),
        "corrupt": _corrupt(FASHION, 0.05),
        "flops": (),
    },
    {"digits": ("fashion-mnist", "noise"), "fashion": ("digits", "noise")},
    1000,
)

IN_PAPER = (PAPERS_METHOD, "vi")
"""The methods that the paper's own code trains."""

CIFAR = Setup("cifar10", "reproduce-cifar10")
"""Few images here too, for the same reason: with all of them, the searches and three seeds would take days."""
HOURS = Scale(
    "hours",
    "6,000 images of CIFAR-10, ResNet-18 of width 16, 10 epochs; about six hours on two cores for all items",
    {
        "table-1": _table_1(CIFAR),
        "table-2": _table_2(CIFAR, 0.05),
        "density": _density(CIFAR),
        **_sweeps(CIFAR),
        "ood": _against_mbnn(CIFAR, 0.05),
        "corrupt": _corrupt(CIFAR, 0.05),
        "flops": (),
    },
    {"cifar10": ("cifar100", "svhn")},
    1000,
)

PAPER_10 = Setup("cifar10", "cifar10", by_authors=SPARSE_BNNS, of_paper="cifar10-paper", in_paper=IN_PAPER)
PAPER_100 = Setup(
    "cifar100", "cifar100", by_authors=SPARSE_BNNS, of_paper="cifar100-paper", in_paper=IN_PAPER, stands_for=CIFAR_100
)
PAPER = Scale(
    "paper",
    "CIFAR-10 and CIFAR-100, ResNet-18 of width 64, 200 epochs, the authors' settings of every method",
    {
        "table-1": (*_table_1(PAPER_10), *_table_1(PAPER_100)),
        "table-2": (*_table_2(PAPER_10, 0.05), *_table_2(PAPER_100, 0.1)),
        "density": _density(PAPER_100),
        **_sweeps(PAPER_100),
        "ood": (*_against_mbnn(PAPER_10, 0.05), *_against_mbnn(PAPER_100, 0.1)),
        "corrupt": (*_corrupt(PAPER_10, 0.05), *_corrupt(PAPER_100, 0.1)),
        "flops": (),
    },
    {"cifar10": ("cifar100", "svhn"), "cifar100": ("cifar10", "svhn")},
    None,
    like_paper=True,
)

SCALES = {scale.name: scale for scale in (MINUTES, HOURS, PAPER)}
