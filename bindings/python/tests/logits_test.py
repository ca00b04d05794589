"""logits: shape, and the same numbers as `headrace score`."""
import json

import numpy as np
import pytest

import headrace


def nll(logits, ids):
    rows = logits[:-1].astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    logprobs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return -logprobs[np.arange(len(ids) - 1), ids[1:]]


def check_against_score(llm, path, ids, command):
    logits = llm.logits(ids)
    assert logits.shape == (len(ids), llm.info.vocab_size)
    assert logits.dtype == np.float32 and logits.flags.c_contiguous
    done = command("score", "-m", path, "--ids-file", "-", "--top", 2,
                   stdin=json.dumps(ids).encode())
    np.testing.assert_allclose(nll(logits, ids), done["nll"], atol=1e-5)
    best = np.argmax(logits, axis=1)  # ties go to the smaller id, in both
    assert list(best) == [row[0][0] for row in done["top"]]
    assert (llm.logits(ids, last_only=True) == logits[-1:]).all()


def test_same_as_score(llm, tiny_path, command):
    check_against_score(llm, tiny_path, llm.tokenize("hello " * 30), command)


def test_same_as_score_with_a_real_model(real_path, command):
    with headrace.LLM(real_path) as llm:
        check_against_score(llm, real_path, llm.tokenize("The capital of France is Paris."),
                            command)


def test_the_next_token_is_what_generate_takes(llm):
    ids = llm.tokenize("hello")
    for _ in range(5):
        ids.append(int(np.argmax(llm.logits(np.array(ids), last_only=True))))
    greedy = headrace.SamplingParams(temperature=0, max_tokens=5, ignore_eos=True)
    assert llm.generate("hello", greedy).token_ids == ids[-5:]


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_chunks_change_nothing(llm, tiny_path, chunk):
    ids = llm.tokenize("what is computed in pieces")
    with headrace.LLM(tiny_path, chunk_tokens=chunk) as other:
        assert (other.logits(ids) == llm.logits(ids)).all()


@pytest.mark.parametrize("ids, fault", [
    ([], ValueError), ([-1], ValueError), ([264], ValueError), ([2**70], ValueError),
    ([1] * 257, headrace.ContextLengthError),
    (5, TypeError), ("hello", TypeError), ([1.5], TypeError), (["1"], TypeError),
    (np.array([1.5]), TypeError), (np.array([[1]]), TypeError), (None, TypeError),
])
def test_no_tokens(llm, ids, fault):
    with pytest.raises(fault):
        llm.logits(ids)
    assert llm.logits([1] * 256).shape == (256, 264)
