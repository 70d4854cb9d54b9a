"""Handwritten digits: the classes 0 to 7 are learnt from N images, and 8 and 9 are out of distribution."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from small.task import Examples, Metrics, Predict, Problem, Task
from ssvi import metrics
from ssvi.data import DataSet, Split, load

CLASSES = 8


def digits_task(train_size: int) -> Task:
    """Digits with this many training images. Few images have more epochs, so the number of steps is alike."""
    return Task(
        f"digits-{train_size}", partial(_draw, train_size), epochs=64000 // train_size, batch_size=32, optimizer="SGD"
    )


def network() -> nn.Module:
    """An MLP 64-256-256-8."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES))


def _draw(train_size: int, seed: int, validation: bool) -> Problem:
    """N images drawn from the training part. Those that are left of it are the validation images."""
    data = load("digits")
    known, other = _by_class(data, data.train)
    train, held_out = known.split(train_size / len(known), torch.Generator().manual_seed(seed))
    test, ood = (held_out, other) if validation else _by_class(data, data.test)
    return Problem(train, network, F.cross_entropy, partial(_evaluate, test=test, ood=ood))


def _by_class(data: DataSet, split: Split) -> tuple[Examples, Examples]:
    """The images of the classes to learn, and the others."""
    images = Examples(data.normalise(split.x).flatten(1), split.y)
    return images[split.y < CLASSES], images[split.y >= CLASSES]


def _evaluate(predict: Predict, test: Examples, ood: Examples) -> Metrics:
    """Accuracy, NLL and ECE on known classes, and how well the entropy finds the unknown ones."""
    probs, probs_ood = (predict(images.x).softmax(-1).mean(0) for images in (test, ood))
    entropy = metrics.entropy(torch.cat([probs, probs_ood]))
    is_ood = torch.cat([torch.zeros(len(test)), torch.ones(len(ood))]).long()
    return {
        "accuracy": metrics.accuracy(probs, test.y),
        "NLL": metrics.nll(probs, test.y),
        "ECE": metrics.ece(probs, test.y),
        "OOD AUROC": metrics.auroc(entropy, is_ood),
    }
