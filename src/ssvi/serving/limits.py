"""What one request, and all of them together, may take: bytes, pixels, seconds, places."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ssvi.errors import UserError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


class ServingError(UserError, ValueError):
    """A setting of the server that cannot be, or an address that cannot be used."""


@dataclass(frozen=True)
class Limits:
    """The limits of a server."""

    max_batch: int = 64
    """Images, or rows, that pass through the network at once."""
    max_wait: float = 0.005
    """Seconds that the first of them waits for others."""
    max_bytes: int = 10_000_000
    """Of the body of one request. A larger one is refused while it is read."""
    max_pixels: int = 50_000_000
    """Of one image. A small file can hold a very large image; it is refused before it is decoded."""
    max_waiting: int = 256
    """Requests that are read, wait or are answered at the same time; more are refused until some are answered."""
    timeout: float = 10.0
    """Seconds from the head of a request to its answer."""

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_bytes", "max_pixels", "max_waiting"):
            if getattr(self, name) < 1:
                raise ServingError(f"{name}={getattr(self, name)} must be at least 1")
        if not 0 <= self.max_wait < self.timeout < float("inf"):
            raise ServingError(
                f"max_wait={self.max_wait:g} and timeout={self.timeout:g} are seconds: "
                "max_wait must be 0 or more, and timeout larger than it"
            )

    @property
    def max_held_bytes(self) -> int:
        """Of the bodies of all requests together: so the memory is bounded, however many clients there are."""
        return 32 * self.max_bytes


def parse_bytes(text: str) -> int:
    """The number of bytes of "500", "500kB", "10MB" or "1.5 GB"; a kB is 1000 bytes."""
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([kmg]?)b?\s*", text, re.IGNORECASE)
    if match is None or (count := round(float(match[1]) * UNITS[match[2].lower()])) < 1:
        raise ServingError(f"{text!r} is not a size: give a number of bytes, for example 500kB or 10MB")
    return count
