"""A request that is not answered, and why."""

from __future__ import annotations


class RefusedError(Exception):
    """Becomes an answer with this HTTP status and this one line; `retry_after` tells the client when to try again."""

    def __init__(self, status: int, line: str, retry_after: int | None = None) -> None:
        super().__init__(line)
        self.status, self.line, self.retry_after = status, line, retry_after
