"""Opening and closing models."""
import copy
import logging
import os
import pathlib
import pickle
import re
import time

import pytest

import headrace
from conftest import GREEDY, ROOT


def test_version_is_that_of_the_project():
    project = (ROOT / "CMakeLists.txt").read_text()
    assert f"project(headrace VERSION {headrace.__version__} " in project
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", headrace.__version__)


def test_by_path_and_by_name(models, tmp_path, monkeypatch):
    path = models()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.gguf").write_bytes(path.read_bytes())
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    for reference in (path, str(path), pathlib.Path(path), "mine"):
        with headrace.LLM(reference) as llm:
            assert llm.info.architecture == "llama" and llm.info.vocab_size == 264
            assert llm.info.name == ("mine" if reference == "mine" else "tiny")
            assert pathlib.Path(llm.info.path).name == f"{llm.info.name}.gguf"


def test_parameters_that_a_token_uses(llm):
    assert llm.info.num_active_parameters == llm.info.num_parameters > 0


@pytest.mark.parametrize("reference, fault", [
    ("no-such-model", headrace.NotFoundError), ("no/such.gguf", headrace.NotFoundError),
    (".", headrace.HeadraceError), (__file__, headrace.HeadraceError),
    ("gemma3-270m", headrace.NotFoundError), ("", headrace.InvalidArgumentError),
    ("\ud800", ValueError), (5, TypeError), (b"x", TypeError), (["x"], TypeError),
])
def test_no_model(reference, fault, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    with pytest.raises(fault) as caught:
        headrace.LLM(reference)
    if fault is headrace.NotFoundError:
        assert caught.value.hint and caught.value.code == "not_found"


def test_a_file_that_is_cut(tiny_path, tmp_path):
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_path.read_bytes()[:20_000])
    with pytest.raises(headrace.CorruptDataError, match="cut.gguf"):
        headrace.LLM(cut)


@pytest.mark.parametrize("option, value, fault", [
    ("context", -1, ValueError), ("context", "5", TypeError), ("context", 2**40, ValueError),
    ("threads", 100_000, ValueError), ("threads", 1.5, TypeError), ("kv_type", "q9", ValueError),
    ("kv_type", 8, TypeError), ("isa", "sse9", ValueError), ("pin", 1, TypeError),
    ("pack", None, TypeError), ("chunk_tokens", 0, ValueError), ("chunk_tokens", 10**6, ValueError),
    ("block_tokens", 17, ValueError), ("max_sequences", 0, ValueError),
    ("max_sequences", 10**6, ValueError), ("max_sequences", True, TypeError),
    ("kv_tokens", 5, ValueError), ("kv_bytes", 2**60, headrace.ResourceExhaustedError),
    ("kv_bytes", 2**70, ValueError), ("pre_tokenizer", "none-such", headrace.HeadraceError),
    ("chat_template", 5, TypeError), ("chat_template", "{{", ValueError),
    ("max_slowdown", "x", TypeError), ("progress", 5, TypeError),
    ("name", b"x", TypeError), ("name", "\ud800", ValueError),
])
def test_options(tiny_path, option, value, fault):
    with pytest.raises(fault):
        headrace.LLM(tiny_path, **{option: value})


def test_options_are_used(tiny_path, caplog):
    with caplog.at_level(logging.WARNING, "headrace"), headrace.LLM(
            tiny_path, context=10_000, threads=1, kv_type="f32", isa="reference", name="other",
            chunk_tokens=16, max_sequences=2, prefix_cache=False, pin=False) as llm:
        assert (llm.context, llm.info.name) == (256, "other")
        assert (llm.info.isa, llm.info.kv_type) == ("reference", "f32")
        assert any("10000" in warning for warning in llm.warnings)
        assert "10000" in caplog.text
        assert len(llm.generate("hello", GREEDY).token_ids) == 12
    with headrace.LLM(tiny_path, context=64) as small:
        assert small.context == 64
        with pytest.raises(headrace.ContextLengthError):
            small.generate("x" * 64)


def test_closing(tiny_path):
    llm = headrace.LLM(tiny_path)
    with llm as same:
        assert same is llm and not llm.is_closed and "tiny" in repr(llm)
    assert llm.is_closed and "closed" in repr(llm)
    llm.close()
    for use in (lambda: llm.generate("x"), lambda: llm.generate([]), lambda: llm.tokenize("x"),
                lambda: llm.detokenize([1]), lambda: llm.logits([1]), llm.stats,
                lambda: llm.chat([{"role": "user", "content": "x"}]),
                lambda: list(llm.stream("x"))):
        with pytest.raises(headrace.InvalidArgumentError, match="closed"):
            use()
    assert llm.info.vocab_size == 264


def test_a_stream_outlives_its_model(tiny_path):
    stream = iter(headrace.LLM(tiny_path).stream("hello", GREEDY))
    assert len(list(stream)) == 13


def test_no_copies(llm):
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="path"):
            copied(llm)


def test_stats(llm):
    llm.generate("hello", GREEDY)
    end = time.monotonic() + 20
    while llm.stats().num_running and time.monotonic() < end:
        time.sleep(0.01)  # the last step ends after its last token
    stats = llm.stats()
    assert stats.num_running == stats.num_waiting == 0
    assert stats.num_steps > 0 and stats.prompt_tokens > 0 and stats.num_length > 0
    assert stats.generated_tokens >= 12 and stats.forward_ms > 0
    assert stats.groups[0].num_blocks > 0 and stats.groups[0].window == 0
    assert 0 <= stats.kv_usage <= 1 and 0 <= stats.token_slot_utilisation <= 1
    assert set(stats.memory_rungs) >= {"evict_prefixes", "preempt", "fail_request"}


def fake_python(folder, script, monkeypatch, path):
    """A program in python3's place, which fetches models."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "python3"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{path}")
    monkeypatch.setenv("HEADRACE_HOME", str(folder / "home"))


def test_the_default_model_is_fetched(tmp_path, monkeypatch, caplog):
    fake_python(tmp_path, "echo 'ERROR: No matching distribution found for x' >&2; exit 1",
                monkeypatch, os.environ["PATH"])
    with pytest.raises(headrace.NotFoundError, match="does not have this version"):
        headrace.LLM()
    with pytest.raises(headrace.NotFoundError, match="does not have this version"):
        headrace.pull("gemma3-270m")
    assert "smollm2-135m" in caplog.text and "Apache-2.0" in caplog.text
    assert "gemma3-270m" in caplog.text and "Gemma" in caplog.text and "MB" in caplog.text
    with pytest.raises(headrace.NotFoundError, match="did you mean gemma3-270m"):
        headrace.pull("gemma3-270n")
    with pytest.raises(TypeError):
        headrace.pull(None)
    with pytest.raises(TypeError, match="progress"):
        headrace.pull("gemma3-270m", progress=5)


def test_progress_may_end_a_fetch(tmp_path, monkeypatch):
    fake_python(tmp_path, "exec sleep 100", monkeypatch, os.environ["PATH"])
    calls = []

    def progress(stage, done, total):
        calls.append((stage, done, total))
        if len(calls) == 3:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        headrace.LLM(progress=progress)
    assert len(calls) == 3 and calls[-1][0] == "downloading" and calls[-1][2] > 10**7
