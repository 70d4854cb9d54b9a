"""Rows of a table in the body of a request: JSON becomes what the network sees."""

from __future__ import annotations

from typing import Any

import msgspec
from torch import Tensor

from ssvi.data.tables import Preprocessing, encode
from ssvi.data.tables.given_rows import given_rows
from ssvi.serving.refused import RefusedError

MOST_ROWS = 10_000
"""Rows of one request: a short body can hold very many short rows."""

Row = dict[str, Any]


def rows_of(body: bytes, learnt: Preprocessing) -> Tensor:
    """The rows of a JSON object, or of a list of them, as float32 (rows, features).

    A row has a value for each column of the training: a number, a text, true, false, or null where it is missing. Other
    columns are ignored.
    """
    rows = _decoded(body)
    if not rows:
        raise RefusedError(422, "there is no row: send a JSON object with a value for each column, or a list of them")
    if len(rows) > MOST_ROWS:
        raise RefusedError(422, f"these are {len(rows):,} rows, more than {MOST_ROWS:,}: send them in several requests")
    return encode(given_rows(rows, learnt), learnt, "the request")


def _decoded(body: bytes) -> list[Row]:
    try:
        content = msgspec.json.decode(body)
        return msgspec.convert([content] if isinstance(content, dict) else content, list[Row])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RefusedError(
            422, f"this is not a JSON object with a value for each column, or a list of them: {error}"
        ) from None
