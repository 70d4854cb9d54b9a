"""Requests that come at the same time pass through the network together.

torch knows nothing of asyncio, so the network runs in one thread of its own. While it computes, requests queue up; the
next batch takes as many of them as it may.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Generic

from ssvi.serving.model import Answer, Item


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[Item, Answer]):
    item: Item
    answer: asyncio.Future[Answer]


class Batcher(Generic[Item, Answer]):
    """Collects inputs until there are `max_batch`, or the first has waited for `max_wait` seconds; then asks for all."""

    def __init__(self, answer: Callable[[list[Item]], list[Answer]], max_batch: int, max_wait: float) -> None:
        self._answer, self._max_batch, self._max_wait = answer, max_batch, max_wait
        self._queue: asyncio.Queue[_Waiting[Item, Answer]] = asyncio.Queue()

    async def ask(self, item: Item) -> Answer:
        """The answer for this input. Who stops waiting takes no place in a batch."""
        waiting: _Waiting[Item, Answer] = _Waiting(item, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        return await waiting.answer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Inside this context questions are answered. At its end, a batch that is on its way is waited for."""
        with ThreadPoolExecutor(1, thread_name_prefix="network") as thread:
            task = asyncio.create_task(self._run(thread))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _run(self, thread: ThreadPoolExecutor) -> None:
        while True:
            batch = [waiting for waiting in await self._collect() if not waiting.answer.done()]
            if batch:
                await self._answer_all(batch, thread)

    async def _collect(self) -> list[_Waiting[Item, Answer]]:
        batch = [await self._queue.get()]
        until = asyncio.get_running_loop().time() + self._max_wait
        with suppress(TimeoutError):
            while len(batch) < self._max_batch:
                async with asyncio.timeout_at(until):  # what is in the queue already comes without waiting
                    batch.append(await self._queue.get())
        return batch

    async def _answer_all(self, batch: list[_Waiting[Item, Answer]], thread: ThreadPoolExecutor) -> None:
        items = [waiting.item for waiting in batch]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(thread, self._answer, items)
            pairs = list(zip(batch, answers, strict=True))
        except Exception as error:  # each who waits is told, and the next batch is served
            for waiting in batch:
                if not waiting.answer.done():
                    waiting.answer.set_exception(error)
            return
        for waiting, answer in pairs:
            if not waiting.answer.done():
                waiting.answer.set_result(answer)
