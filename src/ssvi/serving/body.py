"""The body of a request, read piece by piece: what is too large or of the wrong type is refused before it is all here."""

from __future__ import annotations

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.types import Message

from ssvi.serving.refused import RefusedError
from ssvi.serving.room import Place

FORM = "multipart/form-data"
FIELDS = 8
"""Fields that a form may have besides its file; they are not looked at."""


def check_type(request: Request, accepted: tuple[str, ...]) -> None:
    """Refuse a body of another content type. One without a type is taken as it is."""
    given = _type(request)
    fits = (given.startswith(kind[:-1]) if kind.endswith("/*") else given == kind for kind in accepted)
    if given and not any(fits):
        raise RefusedError(415, f"the content type {given} is not read here: send {', '.join(accepted)}")


async def read_body(request: Request, place: Place) -> bytes:
    """The bytes of the body, or of the one file in a form; the name of that file is not used."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and len(length) < 20:
        place.check(int(length))
    pieces = []
    async for piece in request.stream():
        place.hold(len(piece))
        pieces.append(piece)
    body = b"".join(pieces)
    return await _file(request, body) if _type(request) == FORM else body


async def _file(request: Request, body: bytes) -> bytes:
    """The content of the only file of a form."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async with Request(request.scope, receive).form(max_files=1, max_fields=FIELDS) as form:
        files = [value for value in form.values() if isinstance(value, UploadFile)]
        if not files:
            raise RefusedError(422, "the form has no file: send one, for example with curl -F image=@photo.jpg")
        return await files[0].read()


def _type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
