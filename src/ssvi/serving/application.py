"""The application: which address answers what. It needs the extra `serve`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

import ssvi
from ssvi.errors import UserError
from ssvi.serving.batching import Batcher
from ssvi.serving.body import check_type, read_body
from ssvi.serving.limits import Limits
from ssvi.serving.model import Model
from ssvi.serving.page import POLICY, page
from ssvi.serving.refused import RefusedError
from ssvi.serving.room import Room

READERS = 2
"""Threads that decode images beside the network; each may hold one decoded image."""

ADDRESSES = {"image": "/predict", "row": "/predict/rows"}
"""Where each kind of input is sent."""


class Endpoints:
    """The answers to requests. One object serves one model, from the start of the server to its end."""

    def __init__(self, model: Model[Any, Any], limits: Limits) -> None:
        self.model, self.limits, self.room = model, limits, Room(limits)
        self.batcher = Batcher(model.answer, limits.max_batch, limits.max_wait)
        self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self.html = page(model.facts).encode()

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """While the server runs: the network answers, and images are decoded."""
        with self.readers:
            async with self.batcher.running():
                yield

    async def index(self) -> Response:
        """The page to drop an image on."""
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return Response(self.html, media_type="text/html", headers=headers)

    async def health(self) -> Response:
        """Whether the server is ready, what it serves, and how many requests are waiting for their answer."""
        facts = self.model.facts
        return _json(
            {"ready": True, "model": facts.name, "kind": facts.kind, "fingerprint": facts.fingerprint,
             "samples": facts.samples, "about": facts.line, "waiting": self.room.requests, "version": ssvi.__version__}
        )  # fmt: skip

    async def predict_image(self, request: Request) -> Response:
        """The answer for one image."""
        return _json((await self._answers(request, "image"))[0])

    async def predict_row(self, request: Request) -> Response:
        """The answer for one row of a table."""
        answers = await self._answers(request, "row")
        if len(answers) != 1:
            raise RefusedError(422, f"these are {len(answers)} rows: send one, or all of them to /predict/rows")
        return _json(answers[0])

    async def predict_rows(self, request: Request) -> Response:
        """The answers for rows of a table."""
        return _json({"answers": await self._answers(request, "row")})

    async def _answers(self, request: Request, kind: str) -> list[Any]:
        served = self.model.facts.kind
        if kind != served:
            raise RefusedError(404, f"this run answers {served}s: send them to {ADDRESSES[served]}")
        check_type(request, self.model.content_types)
        deadline = asyncio.get_running_loop().time() + self.limits.timeout
        with self.room.place() as place:
            try:
                async with asyncio.timeout_at(deadline):
                    body = await read_body(request, place)
            except TimeoutError:
                raise RefusedError(408, f"the body did not come within {self.limits.timeout:g} s") from None
            try:
                async with asyncio.timeout_at(deadline):
                    return await self._ask(body)
            except TimeoutError:
                raise RefusedError(504, f"no answer within {self.limits.timeout:g} s: try again later", 1) from None

    async def _ask(self, body: bytes) -> list[Any]:
        items = await asyncio.get_running_loop().run_in_executor(self.readers, self.model.parse, body)
        return await asyncio.gather(*map(self.batcher.ask, items))


def application(model: Model[Any, Any], limits: Limits | None = None) -> FastAPI:
    """The application that serves this model, for uvicorn or any other ASGI server."""
    endpoints = Endpoints(model, limits or Limits())
    app = FastAPI(title="ssvi", lifespan=endpoints.running, openapi_url=None)  # its pages load scripts from elsewhere
    app.add_api_route("/", endpoints.index, methods=["GET"], response_model=None)
    app.add_api_route("/health", endpoints.health, methods=["GET"], response_model=None)
    app.add_api_route("/predict", endpoints.predict_image, methods=["POST"], response_model=None)
    app.add_api_route("/predict/row", endpoints.predict_row, methods=["POST"], response_model=None)
    app.add_api_route("/predict/rows", endpoints.predict_rows, methods=["POST"], response_model=None)
    for kind in (RefusedError, UserError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, _told)
    return app


async def _told(request: Request, error: Exception) -> Response:
    """An error as JSON with one line. Of a bug the client learns nothing more; its traceback is in the server's log."""
    match error:
        case RefusedError():
            headers = None if error.retry_after is None else {"Retry-After": str(error.retry_after)}
            return _json({"error": error.line}, error.status, headers)
        case UserError():
            return _json({"error": str(error)}, 422)
        case HTTPException():
            return _json({"error": error.detail}, error.status_code, dict(error.headers or {}))
        case ClientDisconnect():
            return _json({"error": "the client has gone"}, 400)
        case _:
            return _json({"error": "the server failed: its log says why"}, 500)


def _json(content: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(content), status, headers, media_type="application/json")
