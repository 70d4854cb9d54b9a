"""Mean-field families: the shape of the posterior of a live weight. docs/posteriors.md says when to use which.

    Gaussian()         "gaussian"       the paper's, with exact local reparameterisation; the default
    Laplace()          "laplace"        heavier tails and a peak at mu
    StudentT(nu=5)     "student-t:5"    tails that fall as a power

The last two draw one theta for each call of a layer. `moment_matched=True`, or ":moment-matched" behind the text, trains
them by local reparameterisation with Gaussian noise, which is an approximation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ssvi.families.base import Family
from ssvi.families.kinds import MATCHED, Gaussian, Laplace, StudentT

__all__ = ["Family", "Gaussian", "Laplace", "StudentT", "is_known", "resolve"]

_TEXTS: dict[str, Callable[[re.Match[str]], Family]] = {
    "gaussian": lambda _: Gaussian(),
    f"laplace(?P<matched>:{MATCHED})?": lambda text: Laplace(bool(text["matched"])),
    rf"student-t(?::(?P<nu>[0-9]{{1,7}}(?:\.[0-9]{{1,17}})?))?(?P<matched>:{MATCHED})?": lambda text: StudentT(
        float(text["nu"] or StudentT.nu), bool(text["matched"])
    ),
}
"""What a text may be, and the family that it means."""


def resolve(posterior: str | Family | type[Family]) -> Family:
    """A family from its text, from its class, or the family itself."""
    if isinstance(posterior, Family):
        return posterior
    if isinstance(posterior, type) and issubclass(posterior, Family):
        return posterior()
    for pattern, make in _TEXTS.items():
        if isinstance(posterior, str) and (found := re.fullmatch(pattern, posterior)):
            return make(found)
    raise ValueError(
        f"posterior={posterior!r} is unknown: take 'gaussian', 'laplace', 'student-t' or 'student-t:NU' (NU above 2), the "
        f"last three also with ':{MATCHED}' behind, or a value of ssvi.families"
    )


def is_known(text: str) -> bool:
    """Whether a text is that of a family."""
    try:
        resolve(text)
    except ValueError:
        return False
    return True
