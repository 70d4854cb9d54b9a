"""The results of the evaluations of a finished run: frozen dataclasses whose fields are the keys of the JSON files.

Those of `ssvi predict` are in `ssvi.evaluation.decisions` and `thresholds`. Lists and not tensors, so that
`ssvi.training.records` turns them to JSON and back without loss.
"""

from __future__ import annotations

from dataclasses import dataclass

from ssvi.evaluation.decision_results import CostQuality, DecisionQuality
from ssvi.training.iou_log import IoULine


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; where none was computed the ends are None."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Cost:
    """Weights, bytes, FLOPs and seconds of a run, each beside what dense VI needs for the same network."""

    networks: int
    weights: int
    live_weights: float
    sparsity: float
    """Of the layers that are sparse."""
    sparsity_of_all: float
    unit: str
    """What the method removes: "weight", "channel" or "none"."""
    disk_bytes: int
    memory_bytes: int
    memory_bytes_dense_vi: int
    training_flops: int
    training_flops_dense_vi: int
    inference_flops: int
    inference_flops_dense_vi: int
    training_seconds: float
    peak_memory_bytes: int


@dataclass(frozen=True)
class Reliability:
    """The 15 bins of Guo's diagram; an empty bin has no means."""

    count: list[float]
    confidence: list[float | None]
    accuracy: list[float | None]


@dataclass(frozen=True)
class RiskCoverage:
    """The error rate among the most certain share of the images."""

    coverage: list[float]
    risk: list[float]


@dataclass(frozen=True)
class ImageAnswer:
    """What the network says of one test image."""

    index: int
    label: int
    guess: int
    probability: float
    entropy: float
    mutual_information: float


@dataclass(frozen=True)
class HardImages:
    """The test images that the report shows."""

    uncertain: list[ImageAnswer]
    wrong: list[ImageAnswer]


@dataclass(frozen=True)
class RunEvaluation:
    """evaluation.json: quality of the predictions on the test images, and what the network costs."""

    data: str
    examples: int
    samples: int
    """Outputs that were averaged; a deterministic network has one."""
    seed: int
    metrics: dict[str, Estimate]
    point: str
    """Which single network `at_mean` is about: "posterior mean" or "last network"."""
    at_mean: dict[str, float]
    entropy: float
    mutual_information: float
    cost: Cost
    reliability: Reliability
    risk_coverage: RiskCoverage
    images: HardImages
    asked: int | None = None
    """Samples that were asked for; some networks have fewer to give."""
    decisions: DecisionQuality | None = None
    """None where the run has no validation images."""
    action_costs: CostQuality | None = None


@dataclass(frozen=True)
class InsideOutside:
    """One number on the run's own test images, and on the images of another data set."""

    inside: float
    outside: float


@dataclass(frozen=True)
class Histogram:
    """Shares of the images by entropy, on the own test images and on the others."""

    edges: list[float]
    inside: list[float]
    outside: list[float]


@dataclass(frozen=True)
class OODResult:
    """ood-NAME.json: how well the uncertainty of a network tells the images of another data set from its own."""

    data: str
    samples: int
    seed: int
    inside: int
    """How many test images of the run's own data set."""
    outside: int
    """How many images of the other data set."""
    scores: dict[str, dict[str, Estimate]]
    """Score ("entropy", ...) -> ranking ("auroc", "aupr", "fpr_at_95_tpr") -> value and interval."""
    entropy: InsideOutside
    histogram: Histogram


@dataclass(frozen=True)
class CorruptionResult:
    """corruption.json: quality under the 15 corruptions at 5 severities."""

    data: str
    source: str
    images: int
    samples: int
    seed: int
    clean: dict[str, float]
    corruptions: dict[str, dict[str, list[float]]]
    """Corruption -> metric -> value at severity 1 to 5."""
    severities: list[dict[str, Estimate]]
    """For each severity: metric -> its mean over the corruptions."""


@dataclass(frozen=True)
class LayerRow:
    """What training made of one layer; a deterministic layer has no sigma."""

    layer: str
    kind: str
    d: int
    s: int
    density: float
    sigma_start: float | None
    sigma: float | None
    dead_units: float
    snr: float | None
    kernel: str


@dataclass(frozen=True)
class AgainstSNR:
    """Agreement with criterion 2 at one removal rate: of criterion 4 computed stably, and as printed in float32."""

    rate: float
    snr_abs: float
    snr_abs_textbook: float


@dataclass(frozen=True)
class Agreement:
    """Whether the removal criteria would remove the same weights: intersection over union."""

    rate: float
    criteria: list[str]
    iou: list[list[float]]
    textbook: list[float]
    snr_vs: list[AgainstSNR]


@dataclass(frozen=True)
class RecordedIoU:
    """Whether the criteria agreed while the run was trained: three of its updates of gamma."""

    updates: int
    """How many were recorded."""
    start: IoULine
    middle: IoULine
    end: IoULine


@dataclass(frozen=True)
class Inspection:
    """`ssvi inspect`: the layers of a network, and whether the criteria agree, after the training and in its course."""

    layers: list[LayerRow]
    agreement: Agreement | None
    """None where no weight is random."""
    iou: RecordedIoU | None = None
    """None where the run did not record it."""
