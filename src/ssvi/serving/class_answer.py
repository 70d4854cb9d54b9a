"""What the server answers where the network predicts a class."""

from __future__ import annotations

import msgspec


class ClassAnswer(msgspec.Struct, frozen=True, rename={"guess": "class"}):
    """What the network says of one image or row; `guess` is called "class" in JSON."""

    guess: str
    known: bool
    """False where the entropy exceeds the threshold: the answer is "don't know"."""
    probability: float
    """Of the guess."""
    probabilities: dict[str, float]
    """Of all classes, the most probable first."""
    entropy: float
    """The whole uncertainty in nats, the sum of the next two."""
    data_uncertainty: float
    model_uncertainty: float
    threshold: float | None
    """The entropy above which the answer is "don't know"; None: nothing is refused."""
