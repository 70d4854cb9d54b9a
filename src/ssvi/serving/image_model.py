"""A run on images behind the server."""

from __future__ import annotations

import io

import torch
from PIL import Image
from torch import Tensor

from ssvi.data.given_images import given_images
from ssvi.data.readers.folders import FORMATS
from ssvi.evaluation.loaded_run import LoadedRun
from ssvi.serving.class_answer import ClassAnswer
from ssvi.serving.limits import Limits
from ssvi.serving.model import Facts, Model
from ssvi.serving.refused import RefusedError


class ImageModel(Model[Tensor, ClassAnswer]):
    """Images of any size become what the network sees; every answer is averaged over the same samples of theta."""

    def __init__(
        self, run: LoadedRun, samples: int = 5, seed: int = 0, threshold: float | None = None,
        max_pixels: int = Limits.max_pixels,
    ) -> None:  # fmt: skip
        self._run, self._samples, self._seed, self._max_pixels = run, samples, seed, max_pixels
        self._threshold = run.threshold() if threshold is None else threshold
        self.answer([torch.zeros(run.about.shape, dtype=torch.uint8)])  # what fails, fails before the first request

    @property
    def facts(self) -> Facts:
        """What it is."""
        run, (channels, height, width) = self._run, self._run.about.shape
        colours = "grey" if channels == 1 else "colour"
        line = f"{run.recipe.model} by {run.recipe.method}, {len(run.classes)} classes, {colours} images {height} x {width}"
        return Facts(run.name, "image", run.fingerprint, self._samples, line)

    @property
    def content_types(self) -> tuple[str, ...]:
        """An image file as it is, or in a form."""
        return ("image/*", "application/octet-stream", "multipart/form-data")

    def parse(self, body: bytes) -> list[Tensor]:
        """The image in the bytes of an image file, as the network sees it: uint8 (channels, height, width)."""
        if not body:
            raise RefusedError(422, "there is no image: the file is empty")
        with self._opened(body) as picture:
            if (pixels := picture.width * picture.height) > self._max_pixels:
                raise RefusedError(
                    422,
                    f"the image is {picture.height} x {picture.width} = {pixels:,} pixels, more than "
                    f"{self._max_pixels:,}: make it smaller",
                )
            return [given_images(picture, self._run.about.fitting)[0]]

    def answer(self, items: list[Tensor]) -> list[ClassAnswer]:
        """One pass of all images through the network, for each sample of theta."""
        said = self._run.predict(torch.stack(items), self._samples, self._seed, threshold=self._threshold)
        best = said.probs.argsort(dim=1, descending=True, stable=True)
        return [
            ClassAnswer(
                guess=said.classes[i],
                known=bool(said.known[i]),
                probability=said.probs[i].max().item(),
                probabilities={self._run.classes[k]: said.probs[i, k].item() for k in best[i].tolist()},
                entropy=said.entropy[i].item(),
                data_uncertainty=said.data_uncertainty[i].item(),
                model_uncertainty=said.mutual_information[i].item(),
                threshold=self._threshold,
            )
            for i in range(len(items))
        ]

    def _opened(self, body: bytes) -> Image.Image:
        """The image, of which Pillow has read the head only."""
        try:
            return Image.open(io.BytesIO(body), formats=FORMATS)
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise RefusedError(422, f"the image has too many pixels, more than {self._max_pixels:,}") from error
        except (OSError, ValueError, SyntaxError) as error:
            raise RefusedError(422, f"this is not a readable image: send one of {', '.join(FORMATS)}") from error
