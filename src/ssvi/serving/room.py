"""How many requests, and how many of their bytes, the server holds at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ssvi.serving.limits import Limits
from ssvi.serving.refused import RefusedError

RETRY = 1
"""Seconds after which a client may try again."""


class Room:
    """Counts what all requests hold; only the event loop uses it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = self.bytes = 0

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A place for one request, until the end of the context; refused where there is none."""
        if self.requests >= self.limits.max_waiting:
            raise RefusedError(503, f"{self.requests} requests are waiting already: try again", RETRY)
        self.requests += 1
        place = Place(self)
        try:
            yield place
        finally:
            self.requests -= 1
            self.bytes -= place.bytes


class Place:
    """The place of one request."""

    def __init__(self, room: Room) -> None:
        self.room, self.bytes = room, 0

    def check(self, size: int) -> None:
        """Refuse a body of this size if it is too large."""
        if size > self.room.limits.max_bytes:
            raise RefusedError(413, f"the body is larger than {self.room.limits.max_bytes:,} bytes: send a smaller one")

    def hold(self, size: int) -> None:
        """Count bytes of the body that have come."""
        self.check(self.bytes + size)
        if self.room.bytes + size > self.room.limits.max_held_bytes:
            raise RefusedError(503, "the requests that are waiting already take all memory: try again", RETRY)
        self.bytes += size
        self.room.bytes += size
