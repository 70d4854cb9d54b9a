"""`ssvi.load_run`: a finished run that answers for images of any kind, in a program or a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from ssvi.data import DataError, Split
from ssvi.data.given_images import Images, given_images
from ssvi.evaluation.finished_run import FinishedRun
from ssvi.evaluation.thresholds import FILE, Threshold, chosen_threshold
from ssvi.inference.evaluate import Outputs
from ssvi.training.model_header import ModelAbout
from ssvi.training.recipe import Recipe

SHOWN = 5
"""Images that the text of a prediction shows."""


@dataclass(frozen=True, eq=False, repr=False)
class ImagePrediction:
    """What a run says of n images; every tensor has one entry or row for each."""

    outputs: Outputs
    class_names: tuple[str, ...]
    limit: Callable[[], float | None]
    """Gives the entropy above which the answer is "don't know"; asked for when `known` is first used."""

    @property
    def probs(self) -> Tensor:
        """p(y|x), averaged over samples of theta, (n, classes)."""
        return self.outputs.probs

    @cached_property
    def classes(self) -> list[str]:
        """The name of the most probable class of each image."""
        return [self.class_names[i] for i in self.probs.argmax(1).tolist()]

    @property
    def entropy(self) -> Tensor:
        """H[p(y|x)] in nats, the whole uncertainty: the sum of the next two."""
        return self.outputs.entropy

    @property
    def mutual_information(self) -> Tensor:
        """The uncertainty of the model: it has seen too few such images."""
        return self.outputs.model_uncertainty

    @property
    def data_uncertainty(self) -> Tensor:
        """The uncertainty of the data: the image itself is ambiguous."""
        return self.outputs.data_uncertainty

    @cached_property
    def known(self) -> Tensor:
        """False where the answer should be "don't know": the entropy exceeds the threshold of the run."""
        limit = self.limit()
        return torch.ones(len(self), dtype=torch.bool) if limit is None else self.entropy <= limit

    def __len__(self) -> int:
        return len(self.outputs.labels)

    def __repr__(self) -> str:
        rows = zip(self.classes, self.probs.amax(1).tolist(), self.entropy.tolist(), strict=True)
        lines = [f"  {name}: {probability:.1%}, entropy {entropy:.3f}" for name, probability, entropy in rows]
        more = [f"  ... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return "\n".join([f"ImagePrediction of {len(self)} images:", *lines[:SHOWN], *more])


class LoadedRun:
    """A finished run, ready to predict; several threads may share it. The data set of the training need not be there."""

    def __init__(self, run: FinishedRun) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._threshold: Threshold | None = None

    @property
    def net(self) -> nn.Module:
        """The network, in eval mode."""
        return self._run.net

    @property
    def name(self) -> str:
        """The name of the run folder."""
        return self._run.name

    @property
    def fingerprint(self) -> str:
        """The first digits of the SHA-256 of the model file."""
        return self._run.fingerprint

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the network's outputs."""
        return tuple(self._run.classes)

    @property
    def recipe(self) -> Recipe:
        """The settings of the run."""
        return self._run.recipe

    @property
    def about(self) -> ModelAbout:
        """Which images the network sees: their classes, shape, mean and std."""
        return self._run.about

    def predict(
        self, images: Images, samples: int = 5, seed: int = 0, *, threshold: float | None = None
    ) -> ImagePrediction:
        """What the network says of one image or many, averaged over `samples` draws of theta.

        Images are fitted to the network's size and channels as those of the training, and normalised. `threshold` is the
        entropy above which an answer is "don't know"; None: that of the run (`threshold()`).
        """
        if samples < 1:
            raise DataError(f"samples={samples} must be at least 1")
        x = given_images(images, self.about.fitting)
        outputs = self._run.outputs(Split(x, torch.zeros(len(x), dtype=torch.long)), samples, seed, "images")
        return ImagePrediction(outputs, self.classes, self.threshold if threshold is None else lambda: threshold)

    def threshold(self) -> float | None:
        """The entropy above which an answer is "don't know"; None where the run has no validation images.

        It is what `ssvi predict` stored in the run folder, or else chosen now, which needs the data set of the training.
        """
        with self._lock:
            if self._threshold is None:
                self._threshold = self._run.read(Threshold, FILE) or self._choose()
            return self._threshold.entropy

    def _choose(self) -> Threshold:
        try:
            chosen = replace(chosen_threshold(self._run), asked=5, seed=0)
        except DataError as error:
            raise DataError(
                f'the threshold for "don\'t know" was never chosen, and its data set is not there ({error}): run '
                "`ssvi predict` once where the data set is, or give threshold="
            ) from error
        self._run.write(FILE, chosen)  # where that is not possible, it is chosen again next time
        return chosen

    def __repr__(self) -> str:
        channels, height, width = self.about.shape
        return (
            f"LoadedRun({self.name}: {self.recipe.model} by {self.recipe.method}, {len(self.classes)} classes, "
            f"images {channels} x {height} x {width})"
        )
