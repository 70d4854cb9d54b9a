"""What the numbers of a section were computed on, in words; and what must be said where runs differ in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ssvi.evaluation.wording import data_name, samples_and_seed


@dataclass(frozen=True)
class Used:
    """What the numbers of one run come from."""

    run: str
    data: str
    examples: int
    things: str
    """"images", or "rows" of a table."""
    samples: int
    seed: int
    random: bool
    """Whether its weights are random; else samples and seed mean nothing."""
    chosen_on: int = 0
    """Validation images that thresholds were chosen on."""

    @property
    def made(self) -> str:
        """What a prediction is made of."""
        return samples_and_seed(self.samples, self.seed, self.random)


def counts(used: Sequence[Used]) -> str:
    """How many test images of each data set, as "359 test images of digits; 10,000 of fashion-mnist"."""
    names = _names(used)
    first, *others = dict.fromkeys((part.examples, names[part.data]) for part in used)
    return "; ".join(
        [f"{first[0]:,} test {used[0].things} of {first[1]}", *(f"{count:,} of {name}" for count, name in others)]
    )


def sentence(used: Sequence[Used]) -> str:
    """The images and samples of all runs; what they share is said once."""
    if not used:
        return ""
    names = _names(used)
    images = [_images(part, names[part.data]) for part in used]
    whole = [f"{seen}, {part.made}" for part, seen in zip(used, images, strict=True)]
    if len(set(images)) == 1 and len(set(whole)) > 1:
        return f"{images[0]}. {_by_run(used, [part.made for part in used])}."
    return f"{_by_run(used, whole)}."


def _images(part: Used, name: str) -> str:
    chosen = f" and {part.chosen_on:,} validation {part.things} to choose on" if part.chosen_on else ""
    return f"{part.examples:,} test {part.things} of {name}{chosen}"


def _by_run(used: Sequence[Used], texts: Sequence[str]) -> str:
    """The text that all share, or that of each run after its name."""
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(dict.fromkeys(f"{part.run}: {text}" for part, text in zip(used, texts, strict=True)))


def unlike(used: Sequence[Used]) -> str:
    """A warning where the numbers of runs are not alike; nothing where they are.

    A network without random weights has one prediction, which is no difference in the number of samples.
    """
    things, random = (used[0].things if used else ""), [part for part in used if part.random]
    found = {
        "the data": _several(part.data for part in used),
        f"the number of {things}": _several(part.examples for part in used),
        f"the number of validation {things}": _several(part.chosen_on for part in used),
        "the number of samples": _several(part.samples for part in random),
        "the seed of the samples": _several(part.seed for part in random),
    }
    words = [name for name, differs in found.items() if differs]
    return f"Not alike: these numbers differ in {_listed(words)}. Compare them with care." if words else ""


def lines(used: Sequence[Used]) -> list[str]:
    """Both for the model card: what was used, and the warning where there is one."""
    return [text for text in (sentence(used), unlike(used)) if text]


def _several(values: Iterable[object]) -> bool:
    return len(set(values)) > 1


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _names(used: Sequence[Used]) -> dict[str, str]:
    """A name for each data set: without its folders, unless two would have the same name."""
    short = {part.data: data_name(part.data) for part in used}
    return short if len(set(short.values())) == len(short) else {data: data for data in short}
