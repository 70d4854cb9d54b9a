"""What metrics take: predictions, collected batch by batch, and the checks of all arguments.

Every error names the argument, the value and the remedy.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Predictions:
    """Collects probabilities and labels, so that metrics are computed from the whole data set.

        predictions = Predictions()
        for x, y in loader:
            predictions.add(model(x).softmax(-1), y)
        ece(predictions.probs, predictions.labels)

    Calibration and ranking errors are not averages over batches, so all probabilities must be kept: 10,000 examples of
    100 classes take 4 MB.
    """

    def __init__(self) -> None:
        self._probs: list[Tensor] = []
        self._labels: list[Tensor] = []

    def add(self, probs: Tensor, labels: Tensor) -> None:
        """Append a batch: (n, K) probabilities and (n,) labels."""
        probs, labels = checked_predictions(probs, labels)
        if self._probs and probs.shape[1] != self._probs[0].shape[1]:
            raise ValueError(
                f"probs: {probs.shape[1]} classes after batches of {self._probs[0].shape[1]} classes; "
                "collect each data set in its own Predictions"
            )
        self._probs.append(probs)
        self._labels.append(labels)

    def __len__(self) -> int:
        return sum(map(len, self._labels))

    @property
    def probs(self) -> Tensor:
        """All probabilities so far, (n, K)."""
        return self._concatenated(self._probs)

    @property
    def labels(self) -> Tensor:
        """All labels so far, (n,)."""
        return self._concatenated(self._labels)

    def _concatenated(self, batches: list[Tensor]) -> Tensor:
        if not batches:
            raise ValueError("Predictions: no batch was added; the loader was empty")
        return torch.cat(batches)


def checked_predictions(probs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """(n, K) distributions and (n,) integers in 0..K-1, on the CPU, `probs` still in its own precision."""
    probs = checked_distributions(probs, "probs", ("examples", "classes"))
    labels = checked_integers(labels, len(probs), "labels")
    n_classes = probs.shape[1]
    bad = (labels < 0) | (labels >= n_classes)
    if bad.any():
        i = first_index(bad)
        raise ValueError(
            f"labels: {labels[i]} at index {i} is outside 0..{n_classes - 1}; probs has {n_classes} columns, "
            "so number the classes from 0 or pass the probabilities of all classes"
        )
    return probs, labels


def checked_distributions(values: Tensor, name: str, axes: tuple[str, ...] | None = None) -> Tensor:
    """Non-negative numbers that sum to 1 over the last axis; `axes` names the axes that must be there."""
    values = checked_tensor(values, name)
    if axes is not None and values.dim() != len(axes):
        raise ValueError(f"{name}: expected shape ({', '.join(axes)}), got {tuple(values.shape)}")
    if values.dim() == 0 or values.numel() == 0 or not values.is_floating_point():
        raise ValueError(
            f"{name}: expected floating-point probabilities of at least one example, got {values.dtype} of shape "
            f"{tuple(values.shape)}"
        )
    rows = values.reshape(-1, values.shape[-1]).double()
    _refuse_nan(rows, name)
    _refuse_negative(rows, name)
    _refuse_unnormalised(rows, name, values.dtype)
    return values


def checked_scores(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """(n,) numbers without NaN (they may be infinite) and (n,) labels that are 0 or 1."""
    scores = checked_vector(scores, "scores")
    labels = checked_integers(labels, len(scores), "labels")
    bad = (labels != 0) & (labels != 1)
    if bad.any():
        i = first_index(bad)
        raise ValueError(f"labels: {labels[i]} at index {i} is neither 0 nor 1; mark each example, e.g. labels == 3")
    return scores, labels


def checked_vector(values: Tensor, name: str, length: int | None = None) -> Tensor:
    """(n,) real numbers without NaN."""
    values = checked_tensor(values, name)
    if values.dim() != 1 or len(values) == 0 or values.is_complex():
        raise ValueError(f"{name}: expected real numbers, shape (examples,), got {values.dtype} {tuple(values.shape)}")
    if length is not None and len(values) != length:
        raise ValueError(f"{name}: {len(values)} values for {length} examples; pass one per example")
    _refuse_nan(values.unsqueeze(1), name)
    return values


def checked_integers(labels: Tensor, length: int, name: str) -> Tensor:
    """(n,) integers or booleans, one per example, as int64."""
    labels = checked_tensor(labels, name)
    if labels.dim() != 1 or len(labels) != length:
        raise ValueError(
            f"{name}: expected shape ({length},), one integer per example, got {tuple(labels.shape)}; "
            f"one-hot labels need {name}.argmax(1)"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(f"{name}: expected integers, got {labels.dtype}; pass {name}.long()")
    return labels.long()


def checked_tensor(values: Tensor, name: str) -> Tensor:
    """The tensor on the CPU and detached: not every device has float64, and a metric needs no gradient."""
    if not isinstance(values, Tensor):
        raise TypeError(f"{name}: expected a torch tensor, got {type(values).__name__}; pass torch.as_tensor({name})")
    return values.detach().cpu()


def checked_count(value: int, name: str) -> int:
    """A whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}: expected a whole number of at least 1, got {value!r}")
    return value


def first_index(bad: Tensor) -> int:
    """The index of the first True."""
    return int(bad.int().argmax())


def _refuse_nan(rows: Tensor, name: str) -> None:
    bad = rows.isnan().any(1)
    if bad.any():
        raise ValueError(f"{name}: NaN in row {first_index(bad)}; check that the network's outputs are finite")


def _refuse_negative(rows: Tensor, name: str) -> None:
    bad = (rows < 0).any(1)
    if bad.any():
        i = first_index(bad)
        raise ValueError(f"{name}: {float(rows[i].min()):.4g} in row {i} is negative; {_REMEDY}")


def _refuse_unnormalised(rows: Tensor, name: str, dtype: torch.dtype) -> None:
    # A softmax in half precision misses 1 by a few units of its last digit; one in float32 by far less than 1e-4.
    tolerance = max(1e-4, 4 * torch.finfo(dtype).eps)
    total = rows.sum(1)
    bad = ~((total - 1).abs() <= tolerance)
    if bad.any():
        i = first_index(bad)
        raise ValueError(f"{name}: row {i} sums to {float(total[i]):.6g}, not 1; {_REMEDY}")


_REMEDY = "pass probabilities, not logits: logits.softmax(-1)"
