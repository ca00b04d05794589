"""A generation as it comes, for `for` and for `async for`."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import AsyncIterator, Iterator, Optional, Union

from ._errors import Interrupted
from ._job import Job
from ._results import Generation, Piece, position_logprobs

_Item = Union[Piece, BaseException, None]  # None: the end


class Stream:
    """The pieces of one generation, to be iterated once, by ``for`` or by ``async for``.

    It begins when it is first iterated. Leaving the loop, by ``break`` or an exception, cancels the
    generation, and so does dropping the stream. (The interpreter sees that at once where nothing
    else refers to the loop's iterator; ``with`` and ``async with`` leave no doubt.)

    A HeadraceError comes out of the iteration. Ctrl-C raises Interrupted, which has what there was.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._is_taken = False
        self._is_cancelled = False
        self._lock = threading.Lock()

    @property
    def result(self) -> Generation:
        """The whole, as far as it has come."""
        return self._job.result()

    def cancel(self) -> None:
        """Stops the generation, from any thread: the iteration then comes to its end, with the
        finish reason "cancelled"."""
        with self._lock:
            self._is_cancelled = True
            run = self._job.run
        if run is not None:
            run.cancel()

    close = cancel

    def wait(self) -> Generation:
        """Reads what is left and returns the whole."""
        for _ in self:
            pass
        return self.result

    def __iter__(self) -> Iterator[Piece]:
        self._take()
        return _Pieces(self)

    def __aiter__(self) -> AsyncIterator[Piece]:
        self._take()
        return _AsyncPieces(self)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.cancel()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                        traceback: Optional[TracebackType]) -> None:
        self.cancel()

    def _take(self) -> None:
        with self._lock:
            if self._is_taken:
                raise RuntimeError("a stream can be iterated once only")
            self._is_taken = True

    def _next_pieces(self) -> list[Piece]:
        """Waits for some; none at the end. Begins, if it has not."""
        job = self._job
        if job.run is None:
            if self._is_cancelled:
                return []
            job.submit(keeps_pieces=True)
            with self._lock:
                is_cancelled = self._is_cancelled
            if is_cancelled and job.run is not None:
                job.run.cancel()
        assert job.run is not None
        pieces = [
            Piece(text, None if record is None else record[0][0], choice,
                  None if record is None or job.params.logprobs is None else
                  position_logprobs(record), reason)
            for choice, text, record, reason in job.run.next_pieces()
        ]
        if not pieces:
            error = self.result.error
            if error is not None:
                error.results = [self.result]
                raise error
        return pieces


class _Pieces(Iterator[Piece]):
    """The one loop over a stream: where it goes, the generation ends."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ready: list[Piece] = []

    def __next__(self) -> Piece:
        if not self._ready:
            try:
                self._ready = self._stream._next_pieces()[::-1]
            except KeyboardInterrupt:
                self._stream.cancel()
                raise Interrupted([self._cancelled_result()]) from None
        if not self._ready:
            raise StopIteration
        return self._ready.pop()

    def _cancelled_result(self) -> Generation:
        run = self._stream._job.run
        if run is not None:
            run.wait()
        return self._stream.result

    def __del__(self) -> None:
        self._stream.cancel()


class _AsyncPieces(AsyncIterator[Piece]):
    """The same for an event loop. A thread of its own waits for the pieces, so that many streams
    do not wait for each other's places in the loop's executor."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._queue: Optional[asyncio.Queue[_Item]] = None
        self._has_ended = False

    async def __anext__(self) -> Piece:
        if self._has_ended:
            raise StopAsyncIteration
        if self._queue is None:
            self._queue = asyncio.Queue()
            threading.Thread(target=_feed, name="headrace-stream", daemon=True,
                             args=(self._stream, asyncio.get_running_loop(), self._queue)).start()
        try:
            item = await self._queue.get()
        except BaseException:
            self._stream.cancel()
            raise
        if isinstance(item, Piece):
            return item
        self._has_ended = True
        if item is None:
            raise StopAsyncIteration
        raise item

    def __del__(self) -> None:
        self._stream.cancel()


def _feed(stream: Stream, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[_Item]) -> None:
    """The waiting thread: from the stream into the loop's queue."""

    def put(item: _Item) -> bool:
        try:
            loop.call_soon_threadsafe(queue.put_nowait, item)
        except RuntimeError:  # the loop is closed, and nobody waits
            stream.cancel()
            return False
        return True

    try:
        while True:
            pieces = stream._next_pieces()
            if not all(put(piece) for piece in pieces):
                return
            if not pieces:
                put(None)
                return
    except BaseException as error:  # whatever it is: the loop waits for something
        put(error)
