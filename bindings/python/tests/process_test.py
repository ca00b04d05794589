"""What happens to the process around a model: Ctrl-C, the interpreter's end, a fork."""
import os
import signal
import time

import pytest

BEGIN = """
import os, signal, sys, threading, time
import headrace
llm = headrace.LLM(sys.argv[1], context=200_000)
endless = headrace.SamplingParams(temperature=0, ignore_eos=True)
short = headrace.SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)
"""


@pytest.fixture
def path(models):
    return models("endless", context=1_000_000)


def finish(process, seconds=60):
    out, err = process.communicate(timeout=seconds)
    return out, err


def interrupt(process):
    """Ctrl-C once it says so."""
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    return time.monotonic()


def test_ctrl_c_cancels_and_loses_nothing(script, path):
    process = script(BEGIN + """
print("ready", flush=True)
try:
    llm.generate(["a", "b", ""] + ["c"] * 20, [short] + [endless] * 22)
except KeyboardInterrupt as interrupt:
    results = interrupt.results
    assert isinstance(interrupt, headrace.Interrupted) and len(results) == 23
    print(len(results[0].token_ids), results[0].finish_reason)
    print(len(results[1].token_ids) > 5, results[1].finish_reason, results[1].text != "")
    print(type(results[2].error).__name__, results[22].finish_reason)
print(llm.generate("a", short).token_ids == results[0].token_ids)
""", path)
    begin = interrupt(process)
    out, err = finish(process)
    assert out.splitlines() == ["5 length", "True cancelled True",
                                "InvalidArgumentError cancelled", "True"], err
    assert time.monotonic() - begin < 10


def test_ctrl_c_in_a_stream(script, path):
    process = script(BEGIN + """
print("ready", flush=True)
n = 0
try:
    for piece in llm.stream("a", endless):
        n += 1
except KeyboardInterrupt as interrupt:
    if isinstance(interrupt, headrace.Interrupted):
        done = interrupt.results[0]
        assert len(done.token_ids) >= n and done.finish_reason == "cancelled", done.finish_reason
print(n > 5, len(llm.logits([1, 2])))
""", path)
    interrupt(process)
    out, err = finish(process)
    assert out == "True 2\n", err


def test_ctrl_c_in_logits(script, path):
    process = script(BEGIN + """
print("ready", flush=True)
try:
    llm.logits([1] * 150_000, last_only=True)
except KeyboardInterrupt as interrupt:
    print(type(interrupt).__name__, len(llm.logits([1, 2])))  # there are no results to tell
""", path)
    interrupt(process)
    out, err = finish(process)
    assert out == "KeyboardInterrupt 2\n", err


def test_ctrl_c_in_an_event_loop(script, path):
    process = script(BEGIN + """
import asyncio
async def main():
    print("ready", flush=True)
    async for piece in llm.stream("a", endless):
        pass
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", len(llm.logits([1, 2])))
""", path)
    interrupt(process)
    out, err = finish(process)
    assert out == "interrupted 2\n", err


def test_ctrl_c_while_a_model_is_fetched(script, path, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text("#!/bin/sh\nexec sleep 100\n")
    (tmp_path / "bin" / "python3").chmod(0o755)
    process = script("""
        import headrace
        print("ready", flush=True)
        try:
            headrace.LLM()
        except KeyboardInterrupt:
            print("interrupted")
        """, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", HEADRACE_HOME=str(tmp_path / "home"))
    begin = interrupt(process)
    out, err = finish(process)
    assert out == "interrupted\n", err
    assert time.monotonic() - begin < 5
    left = [each for each in (tmp_path / "home").rglob("*") if each.is_file()]
    assert not [each for each in left if each.suffix != ".lock"], left


def test_a_signal_handler_may_close(script, path):
    process = script(BEGIN + """
signal.signal(signal.SIGTERM, lambda *_: llm.close())
print("ready", flush=True)
print(llm.generate("a", endless).finish_reason)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
llm = headrace.LLM(sys.argv[1], context=200_000)
try:
    llm.logits([1] * 150_000, last_only=True)
except headrace.HeadraceError as error:
    print(error.code)
""", path)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    out, err = finish(process)
    assert out == "cancelled\ncancelled\n", err


@pytest.mark.parametrize("what", [
    "pass",
    "pieces = iter(llm.stream('a', endless)); next(pieces)",
    "threading.Thread(target=llm.generate, args=('a', endless), daemon=True).start();"
    "time.sleep(0.3)",
    "threading.Thread(target=llm.logits, args=([1] * 150_000,), kwargs={'last_only': True},"
    "daemon=True).start(); time.sleep(0.3)",
    """
import asyncio
kept = []
async def main():
    kept.append(llm.stream('a', endless).__aiter__())
    await kept[0].__anext__()
asyncio.run(main())
""",
    "sys.modules['kept'] = [llm, iter(llm.stream('a', endless))]",
])
def test_the_interpreter_ends_with_work_under_way(script, path, what):
    process = script(BEGIN + what + "\nprint('end', flush=True)\n", path)
    out, err = finish(process)
    assert (out, process.returncode) == ("end\n", 0), err
    assert "Fatal" not in err and "terminate" not in err, err


FORK = """
stream = llm.stream("a", endless)
pieces = iter(stream)
next(pieces)
child = os.fork()
if child == 0:
    for use in (lambda: llm.generate("a", short), lambda: llm.tokenize("a"), lambda: next(pieces),
                lambda: llm.logits([1]), lambda: list(llm.stream("a", short))):
        try:
            while True:
                use()
        except headrace.InvalidArgumentError as error:
            assert "fork" in str(error), error
    del pieces, stream
    llm.close()
    with headrace.LLM(sys.argv[1]) as own:
        print(own.generate("a", short).token_ids, flush=True)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stream.cancel()
assert [piece.finish_reason for piece in pieces][-1] == "cancelled"
print(llm.generate("a", short).token_ids)
"""


def test_a_fork(script, path):
    process = script(BEGIN + FORK, path)
    out, err = finish(process)
    lines = out.splitlines()
    assert len(lines) == 3 and lines[0] == lines[2] and lines[1] == "7", (out, err)


def test_a_pool_of_processes(script, path):
    process = script(BEGIN + """
import multiprocessing
def work(i):
    try:
        llm.generate("a", short)
    except headrace.HeadraceError as error:
        return type(error).__name__ + str(i)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(3)))
""", path)
    out, err = finish(process)
    assert out == "['InvalidArgumentError0', 'InvalidArgumentError1', 'InvalidArgumentError2']\n", err
