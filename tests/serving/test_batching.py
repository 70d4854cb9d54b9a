"""Questions that come together are asked together, in one thread; none is lost, and one that fails fails alone."""

import asyncio

import pytest
from models_to_serve import Echo

from ssvi.serving import Batcher


def answers(echo: Echo, words, max_batch=64, max_wait=0.05):
    async def ask_all():
        batcher = Batcher(echo.answer, max_batch, max_wait)
        async with batcher.running():
            return await asyncio.gather(*map(batcher.ask, words), return_exceptions=True)

    return asyncio.run(ask_all())


def test_each_gets_its_own_answer_in_batches_of_at_most_the_largest_size():
    echo, words = Echo(), [str(i) for i in range(150)]
    assert [answer["said"] for answer in answers(echo, words, max_batch=64)] == words
    assert [len(batch) for batch in echo.batches] == [64, 64, 22]
    assert [word for batch in echo.batches for word in batch] == words, "first come, first served"
    assert len(echo.threads) == 1


def test_a_batch_of_one_is_possible():
    echo = Echo()
    answers(echo, ["a", "b"], max_batch=1)
    assert echo.batches == [["a"], ["b"]]


def test_without_waiting_what_is_there_already_is_still_taken_together():
    echo = Echo()
    answers(echo, ["a", "b", "c"], max_wait=0)
    assert echo.batches == [["a", "b", "c"]]


def test_one_alone_does_not_wait_for_a_full_batch():
    echo = Echo()
    assert answers(echo, ["a"], max_wait=0.001) == [{"said": "a"}]


def test_the_first_waits_for_others():
    async def ask_later():
        batcher = Batcher(echo.answer, max_batch=2, max_wait=20)
        async with batcher.running():
            first = asyncio.create_task(batcher.ask("a"))
            await asyncio.sleep(0.05)
            assert not first.done()
            return await asyncio.gather(first, batcher.ask("b"))

    echo = Echo()
    assert asyncio.run(ask_later()) == [{"said": "a"}, {"said": "b"}]
    assert echo.batches == [["a", "b"]], "the second made the batch full, long before 20 s"


def test_while_the_network_computes_others_queue_up_for_the_next_batch():
    async def ask_in_two_parts():
        batcher = Batcher(echo.answer, 64, 0)
        async with batcher.running():
            first = asyncio.create_task(batcher.ask("first"))
            await asyncio.sleep(0.05)
            others = [asyncio.create_task(batcher.ask(str(i))) for i in range(10)]
            await asyncio.sleep(0.05)
            echo.go_on.set()
            return await asyncio.gather(first, *others)

    echo = Echo()
    echo.go_on.clear()
    assert len(asyncio.run(ask_in_two_parts())) == 11
    assert [len(batch) for batch in echo.batches] == [1, 10]


def test_who_has_gone_takes_no_place():
    async def give_up():
        batcher = Batcher(echo.answer, 64, 0)
        async with batcher.running():
            first = asyncio.create_task(batcher.ask("first"))
            await asyncio.sleep(0.05)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await batcher.ask("impatient")
            last = asyncio.create_task(batcher.ask("last"))
            echo.go_on.set()
            return await asyncio.gather(first, last)

    echo = Echo()
    echo.go_on.clear()
    asyncio.run(give_up())
    assert echo.batches == [["first"], ["last"]]


def test_after_a_failure_the_next_batch_is_served():
    echo = Echo()
    failed, *rest = answers(echo, ["fail", "a", "b"], max_batch=1)
    assert isinstance(failed, RuntimeError)
    assert rest == [{"said": "a"}, {"said": "b"}]


def test_too_few_answers_are_an_error_and_no_shift():
    async def ask_all():
        batcher = Batcher(lambda items: items[1:], 64, 0.01)
        async with batcher.running():
            return await asyncio.gather(*map(batcher.ask, "abc"), return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(ask_all())] == [ValueError] * 3
