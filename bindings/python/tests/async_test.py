"""async for: many streams in one loop, left early, cancelled, failing."""
import asyncio
import time

import pytest

import headrace
from conftest import ENDLESS, GREEDY


async def read(stream):
    return [piece async for piece in stream]


def test_pieces_are_the_text(llm):
    whole = llm.generate("hello", GREEDY)

    async def main():
        stream = llm.stream("hello", GREEDY)
        return await read(stream), stream.result

    pieces, result = asyncio.run(main())
    assert "".join(piece.text for piece in pieces) == whole.text == result.text
    assert pieces[-1].finish_reason == "length"


def test_many_at_once(llm):
    prompts = [f"prompt {i}" for i in range(50)]

    async def main():
        return await asyncio.gather(*(read(llm.stream(prompt, GREEDY)) for prompt in prompts))

    together = asyncio.run(main())
    alone = llm.generate(prompts, GREEDY)
    assert [[piece.token_id for piece in pieces[:-1]] for pieces in together] == [
        each.token_ids for each in alone]


def test_the_loop_goes_on_meanwhile(endless):
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.005)

        ticker = asyncio.create_task(tick())
        pieces = 0
        async for _ in endless.stream("hello", ENDLESS):
            pieces += 1
            if pieces == 200:
                break
        ticker.cancel()
        return ticks

    assert asyncio.run(main()) >= 2


def idle_after(llm):
    begin = time.monotonic()
    llm.logits([1])  # waits for all generations
    return time.monotonic() - begin


def test_break_cancels(endless):
    async def main():
        stream = endless.stream("hello", ENDLESS)
        async for piece in stream:
            assert piece.token_id is not None
            break
        return stream

    stream = asyncio.run(main())
    assert idle_after(endless) < 5
    assert len(stream.result.token_ids) < 100_000


def test_a_cancelled_task_cancels(endless):
    async def main():
        task = asyncio.create_task(read(endless.stream("hello", ENDLESS)))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(read(endless.stream("hello", ENDLESS)), 0.1)

    asyncio.run(main())
    assert idle_after(endless) < 5


def test_with_cancels(endless):
    async def main():
        async with endless.stream("hello", ENDLESS) as stream:
            pieces = stream.__aiter__()
            await pieces.__anext__()
        last = [piece async for piece in KeepIterating(pieces)][-1]
        assert last.finish_reason == "cancelled"

    class KeepIterating:
        def __init__(self, pieces):
            self.pieces = pieces

        def __aiter__(self):
            return self.pieces

    asyncio.run(main())
    assert idle_after(endless) < 5


def test_a_loop_that_ends_first(endless):
    """The iterator outlives its loop."""
    kept = []

    async def main():
        kept.append(endless.stream("hello", ENDLESS).__aiter__())
        await kept[0].__anext__()

    asyncio.run(main())
    assert idle_after(endless) < 5


def test_errors(llm):
    async def main():
        with pytest.raises(headrace.ContextLengthError):
            await read(llm.stream("x" * 1000, GREEDY))
        with pytest.raises(headrace.InvalidArgumentError):
            await read(llm.stream(""))
        stream = llm.stream("hello", GREEDY)
        await read(stream)
        with pytest.raises(RuntimeError):
            await read(stream)

    asyncio.run(main())


def test_closed_meanwhile(models):
    async def main():
        llm = headrace.LLM(models("endless", context=1_000_000), context=200_000)
        pieces = llm.stream("hello", ENDLESS).__aiter__()
        await pieces.__anext__()
        llm.close()
        last = None
        async for last in _again(pieces):
            pass
        assert last.finish_reason == "cancelled"
        with pytest.raises(headrace.InvalidArgumentError, match="closed"):
            await read(llm.stream("hello"))

    asyncio.run(main())


async def _again(pieces):
    while True:
        try:
            yield await pieces.__anext__()
        except StopAsyncIteration:
            return
