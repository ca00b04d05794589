"""Several threads, one model."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import headrace
from conftest import ENDLESS, GREEDY


def test_many_threads_get_the_same_as_alone(llm):
    prompts = [f"prompt {i}" for i in range(24)]
    alone = [llm.generate(prompt, GREEDY).token_ids for prompt in prompts]
    right = llm.logits([1, 2, 3])

    def work(i):
        if i % 6 == 5:  # sessions between the requests
            assert (llm.logits([1, 2, 3]) == right).all()
        if i % 2:
            return [piece.token_id for piece in llm.stream(prompts[i], GREEDY)][:-1]
        return llm.generate(prompts[i], GREEDY).token_ids

    with ThreadPoolExecutor(12) as pool:
        for _ in range(5):
            assert list(pool.map(work, range(24))) == alone


def test_other_threads_run_meanwhile(endless):
    """The lock of the interpreter is given up while a call waits."""
    stop = threading.Event()
    counted = 0

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    endless.generate("hello", headrace.SamplingParams(max_tokens=3000, ignore_eos=True))
    seconds = time.monotonic() - begin
    stop.set()
    thread.join()
    assert counted > 50 * seconds, (counted, seconds)


def test_logits_wait_for_generations_and_new_ones_for_them(endless):
    pieces = iter(endless.stream("hello", ENDLESS))
    next(pieces)
    done = []

    def work(name, call):
        call()
        done.append(name)

    logits = threading.Thread(target=work, args=("logits", lambda: endless.logits([1, 2])))
    logits.start()
    time.sleep(0.2)
    assert not done
    later = threading.Thread(target=work,
                             args=("generate", lambda: endless.generate("hello", GREEDY)))
    later.start()
    time.sleep(0.2)
    assert not done
    del pieces  # cancels
    logits.join(20)
    later.join(20)
    assert done == ["logits", "generate"]


def test_close_ends_what_other_threads_wait_for(models):
    llm = headrace.LLM(models("endless", context=1_000_000), context=200_000)
    results = []
    thread = threading.Thread(target=lambda: results.append(llm.generate("hello", ENDLESS)))
    thread.start()
    time.sleep(0.3)
    begin = time.monotonic()
    llm.close()
    thread.join(20)
    assert time.monotonic() - begin < 10
    assert results[0].finish_reason == "cancelled" and results[0].token_ids
    with pytest.raises(headrace.InvalidArgumentError):
        llm.generate("hello")


def test_close_ends_logits_in_another_thread(models):
    llm = headrace.LLM(models("endless", context=1_000_000), context=60_000)
    faults = []

    def work():
        try:
            llm.logits([1] * 50_000, last_only=True)
        except headrace.HeadraceError as fault:
            faults.append(fault.code)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.3)
    llm.close()
    thread.join(60)
    assert faults == ["cancelled"]
