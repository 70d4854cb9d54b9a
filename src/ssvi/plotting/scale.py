"""From numbers to positions on an axis: scales, their ticks at round numbers, and the labels of the ticks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Label = Callable[[float], str]


def short(value: float) -> str:
    """Three digits: 0.25, 12, 3.5k, 45.4G; small ones as 1e-4."""
    size = abs(value)
    for limit, sign in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.3g}{sign}"
    if 0 < size < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    return f"{value:.3g}"


def percent(value: float) -> str:
    """0.05 as 5 %."""
    return f"{100 * value:.3g} %"


@dataclass(frozen=True)
class Scale:
    """An axis: data from `low` to `high`, as they are (`linear`), by their logarithm (`log`) or by their root (`sqrt`)."""

    low: float
    high: float
    kind: str = "linear"
    label: Label = short

    def at(self, value: float) -> float:
        """Where a value stands between 0 and 1."""
        low, high, v = (self._mapped(x) for x in (self.low, self.high, min(max(value, self.low), self.high)))
        return (v - low) / (high - low)

    def _mapped(self, value: float) -> float:
        return {"linear": float, "log": math.log10, "sqrt": math.sqrt}[self.kind](value)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers within the axis."""
        if self.kind == "sqrt":
            return [v for v in (0.0, 0.01, 0.05, 0.2, 0.5, 1.0) if v <= self.high]
        candidates = _decades(self.low, self.high, about) if self.kind == "log" else _steps(self.low, self.high, about)
        slack = 1e-9 * (self.high - self.low)
        return [v for v in candidates if self.low - slack <= v <= self.high + slack]


def linear(
    values: Iterable[float], *, low: float | None = None, high: float | None = None, label: Label = short
) -> Scale:
    """A linear axis around the values, ends rounded outward unless they are given."""
    data = list(values) or [0.0, 1.0]
    a, b = (min(data) if low is None else low), (max(data) if high is None else high)
    if b <= a:
        pad = abs(a) * 0.1 or 1.0
        a, b = (a - pad if low is None else a), a + pad
    step = _step(b - a, 5)
    return Scale(
        math.floor(a / step + 1e-9) * step if low is None else low,
        math.ceil(b / step - 1e-9) * step if high is None else high,
        "linear",
        label,
    )


def log(values: Iterable[float], label: Label = short, most: float = math.inf) -> Scale:
    """A logarithmic axis around the positive values; it does not go beyond `most`."""
    positive = [v for v in values if v > 0] or [0.1, 1.0]
    low, high = min(positive) / 1.15, max(positive) * 1.15
    if high / low < 4:  # too short to have ticks
        low, high = low / 2, high * 2
    return Scale(low, min(high, most), "log", label)


def _step(span: float, about: int) -> float:
    """1, 2 or 5 times a power of ten."""
    raw = span / about
    power: float = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)


def _steps(low: float, high: float, about: int) -> list[float]:
    step = _step(high - low, about)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def _decades(low: float, high: float, about: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    many = high / low > 100
    stride = max(1, math.ceil((last - first) / about))
    return [m * 10.0**k for k in range(first, last + 1, stride if many else 1) for m in ((1,) if many else (1, 2, 5))]
