"""The limits of a server, and sizes as people write them."""

import pytest

from ssvi.serving import Limits, RefusedError, ServingError, parse_bytes
from ssvi.serving.room import Room


@pytest.mark.parametrize(
    ("text", "count"), [("500", 500), ("500kB", 500_000), ("10MB", 10**7), ("1.5 gb", 1_500_000_000), ("2M", 2 * 10**6)]
)
def test_sizes(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "MB", "-1", "10 apples", "0", "1e9", "nan", "9" * 40])
def test_what_is_no_size(text):
    with pytest.raises(ServingError, match="is not a size: give a number of bytes, for example 500kB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_batch": 0}, "max_batch=0 must be at least 1"),
        ({"max_bytes": -5}, "max_bytes=-5 must be at least 1"),
        ({"max_waiting": 0}, "max_waiting=0 must be at least 1"),
        ({"timeout": 0.0}, "max_wait=0.005 and timeout=0 are seconds"),
        ({"max_wait": -1.0}, "max_wait=-1"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"timeout": float("inf")}, "timeout=inf"),
    ],
)
def test_limits_that_cannot_be(settings, words):
    with pytest.raises(ServingError, match=words):
        Limits(**settings)


def test_all_bodies_together_have_a_limit_too():
    room = Room(Limits(max_bytes=10))
    with room.place() as first:
        first.hold(10)
        with pytest.raises(RefusedError, match="larger than 10 bytes"):
            first.hold(1)
        room.bytes = 32 * 10 - 5
        with room.place() as second, pytest.raises(RefusedError, match="take all memory") as error:
            second.hold(6)
        assert (error.value.status, error.value.retry_after) == (503, 1)
        room.bytes = 10
    assert (room.requests, room.bytes) == (0, 0), "what was held is given back"
