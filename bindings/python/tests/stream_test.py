"""stream: pieces as they come, and how a stream is left."""
import gc
import threading
import time

import pytest

import headrace
from conftest import ENDLESS, GREEDY
from headrace import SamplingParams


def test_pieces_are_the_text(llm):
    whole = llm.generate("hello", GREEDY)
    stream = llm.stream("hello", GREEDY)
    pieces = list(stream)
    assert "".join(piece.text for piece in pieces) == whole.text
    assert [piece.token_id for piece in pieces[:-1]] == whole.token_ids
    assert pieces[-1].token_id is None and pieces[-1].finish_reason == "length"
    assert all(piece.finish_reason is None and piece.logprobs is None for piece in pieces[:-1])
    assert stream.result.token_ids == whole.token_ids and stream.result.text == whole.text


def test_never_half_a_character(llm):
    euro = "€".encode()
    assert [len(llm.tokenize("€"))] == [3]
    ids = llm.tokenize("€")
    stream = llm.stream("hello", SamplingParams(temperature=0, max_tokens=2,
                                                logit_bias={ids[0]: 1000}))
    assert [piece.text for piece in stream] == ["", "\ufffd", "\ufffd"]
    assert euro.decode() == "€"


def test_chat_and_logprobs(llm):
    talk = [{"role": "user", "content": "Hi"}]
    params = SamplingParams(temperature=0, max_tokens=5, logprobs=2, ignore_eos=True)
    whole = llm.chat(talk, params)
    pieces = list(llm.stream_chat(talk, params))
    assert [piece.logprobs for piece in pieces[:-1]] == whole.logprobs


def test_pieces_come_one_by_one(endless):
    begin = time.monotonic()
    for piece in endless.stream("hello", ENDLESS):
        assert piece.token_id is not None
        break
    assert time.monotonic() - begin < 5


def wait_until_idle(llm):
    """logits() needs all generations to have ended."""
    begin = time.monotonic()
    llm.logits([1])
    return time.monotonic() - begin


def test_break_cancels(endless):
    stream = endless.stream("hello", ENDLESS)
    for piece in stream:
        break
    assert wait_until_idle(endless) < 5
    assert 0 < len(stream.result.token_ids) < 100_000


def test_an_exception_in_the_loop_cancels(endless):
    with pytest.raises(ZeroDivisionError):
        for piece in endless.stream("hello", ENDLESS):
            1 / 0
    gc.collect()
    assert wait_until_idle(endless) < 5


def test_with_cancels(endless):
    with endless.stream("hello", ENDLESS) as stream:
        pieces = iter(stream)
        next(pieces)
    assert wait_until_idle(endless) < 5
    rest = list(pieces)
    assert rest[-1].finish_reason == "cancelled"
    assert stream.result.finish_reason == "cancelled"


def test_cancel_from_another_thread(endless):
    stream = endless.stream("hello", ENDLESS)
    threading.Timer(0.2, stream.cancel).start()
    pieces = list(stream)
    assert pieces[-1].finish_reason == "cancelled" and len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == stream.result.text


def test_cancel_before_it_begins(llm):
    stream = llm.stream("hello", GREEDY)
    stream.cancel()
    assert list(stream) == [] and stream.result.finish_reason == "cancelled"


def test_dropped_without_being_read(endless):
    stream = endless.stream("hello", ENDLESS)
    del stream
    pieces = iter(endless.stream("hello", ENDLESS))
    next(pieces)
    del pieces
    assert wait_until_idle(endless) < 5


def test_once_only(llm):
    stream = llm.stream("hello", GREEDY)
    assert stream.wait().token_ids == llm.generate("hello", GREEDY).token_ids
    with pytest.raises(RuntimeError):
        iter(stream)


def test_errors_come_out_of_the_loop(llm):
    with pytest.raises(TypeError):
        llm.stream(None)
    with pytest.raises(headrace.ContextLengthError):
        list(llm.stream("x" * 1000, GREEDY))
    with pytest.raises(headrace.InvalidArgumentError):
        next(iter(llm.stream("")))


def test_two_at_once(llm):
    streams = [iter(llm.stream(prompt, GREEDY)) for prompt in ("hello", "other")]
    mixed = [next(stream).token_id for _ in range(12) for stream in streams]
    assert mixed[0::2] == llm.generate("hello", GREEDY).token_ids
    assert mixed[1::2] == llm.generate("other", GREEDY).token_ids
