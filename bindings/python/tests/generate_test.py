"""generate: prompts of all kinds, alone and many, and the same answers as the command line."""
import dataclasses

import numpy as np
import pytest

import headrace
from conftest import GREEDY
from headrace import SamplingParams


def test_a_prompt_gives_a_generation_and_a_list_gives_a_list(llm):
    one = llm.generate("hello", GREEDY)
    assert isinstance(one, headrace.Generation)
    assert len(one.token_ids) == one.completion_tokens == 12
    assert one.finish_reason == "length" and one.choices[0].stop_token is None
    assert one.prompt_tokens == len(llm.tokenize("hello"))
    assert one.text == llm.detokenize(one.token_ids, skip_special=True)
    many = llm.generate(["hello", "apple"], GREEDY)
    assert [each.prompt_tokens for each in many] == [4, 5]
    assert many[0].token_ids == one.token_ids
    assert llm.generate([], GREEDY) == []


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda ids: np.array(ids, np.uint16)])
def test_token_ids_are_prompts_too(llm, kind):
    ids = llm.tokenize("hello")
    expected = llm.generate("hello", GREEDY).token_ids
    assert llm.generate(kind(ids), GREEDY).token_ids == expected
    mixed = llm.generate([kind(ids), "hello"], GREEDY)
    assert [each.token_ids for each in mixed] == [expected, expected]


def test_same_as_the_command_line(llm, tiny_path, command):
    done = command("run", "-m", tiny_path, "--raw", "-p", "hello", "--temp", 0, "-n", 12,
                   "--ignore-eos")
    assert llm.generate("hello", GREEDY).token_ids == done["token_ids"]
    sampled = command("run", "-m", tiny_path, "--raw", "-p", "hello", "--seed", 7, "-n", 30)
    params = SamplingParams(seed=7, max_tokens=30)  # all else by default
    ours = llm.generate("hello", params)
    assert (ours.token_ids, ours.text) == (sampled["token_ids"], sampled["text"])
    assert ours.finish_reason == sampled["finish_reason"] and ours.seed == 7


def test_same_as_the_command_line_with_a_real_model(real_path, command):
    prompt = "The capital of France is"
    done = command("run", "-m", real_path, "--raw", "-p", prompt, "--temp", 0, "-n", 16)
    with headrace.LLM(real_path) as llm:
        ours = llm.generate(prompt, SamplingParams(temperature=0, max_tokens=16))
    assert (ours.text, ours.token_ids) == (done["text"], done["token_ids"])
    assert "Paris" in ours.text


def test_company_changes_nothing(llm):
    params = [SamplingParams(seed=i, max_tokens=5 + i, ignore_eos=True) for i in range(40)]
    prompts = [f"prompt {i}" for i in range(40)]
    together = llm.generate(prompts, params)
    alone = [llm.generate(*each) for each in zip(prompts, params)]
    assert [each.token_ids for each in together] == [each.token_ids for each in alone]
    assert [len(each.token_ids) for each in together] == [5 + i for i in range(40)]


def test_seed(llm):
    texts = [llm.generate("x", SamplingParams(seed=seed, temperature=5.0, top_k=0, top_p=1.0,
                                              min_p=0.0, max_tokens=20)).token_ids
             for seed in (1, 1, 2, 2**64 - 1)]
    assert texts[0] == texts[1] != texts[2] != texts[3]
    fresh = llm.generate("x", SamplingParams(temperature=5.0, max_tokens=20))
    again = llm.generate("x", SamplingParams(temperature=5.0, max_tokens=20, seed=fresh.seed))
    assert fresh.token_ids == again.token_ids


def test_stop_tokens(llm):
    plain = llm.generate("hello", GREEDY)
    at = plain.token_ids[5]
    first = plain.token_ids.index(at)
    stopped = llm.generate("hello", dataclasses.replace(GREEDY, stop_token_ids=[at]))
    assert stopped.token_ids == plain.token_ids[:first]
    assert stopped.finish_reason == "stop" and stopped.choices[0].stop_token == at
    later = llm.generate("hello", dataclasses.replace(GREEDY, stop_token_ids=[at],
                                                      min_tokens=first + 1))
    assert len(later.token_ids) > first


def test_stop_strings(llm):
    plain = llm.generate("hello", dataclasses.replace(GREEDY, max_tokens=40))
    stop = plain.text[len(plain.text) // 2:][:3]
    for stops in (stop, [stop], ["never there", stop]):
        params = dataclasses.replace(GREEDY, max_tokens=None, stop=stops)
        done = llm.generate("hello", params)
        assert done.text == plain.text[:plain.text.index(stop)]
        assert done.finish_reason == "stop" and done.choices[0].stop_string == stop
        assert done.token_ids == plain.token_ids[:len(done.token_ids)]
        pieces = list(llm.stream("hello", params))
        assert "".join(piece.text for piece in pieces) == done.text
        assert pieces[-1].finish_reason == "stop"
    never = llm.generate("hello", dataclasses.replace(GREEDY, stop="never there"))
    assert never.text == llm.generate("hello", GREEDY).text
    assert never.finish_reason == "length" and never.choices[0].stop_string is None


def test_stop_strings_of_many(endless):
    """Each ends by its own text, also while another is waited for."""
    always = SamplingParams(temperature=0, ignore_eos=True, logit_bias={65: 1000}, stop="A" * 50,
                            n=2)
    slow = SamplingParams(temperature=0, ignore_eos=True, max_tokens=3000)
    done = endless.generate(["hello"] * 5, [slow] + [always] * 4)
    assert [choice.text for each in done[1:] for choice in each.choices] == [""] * 8
    assert done[0].completion_tokens == 3000
    assert endless.stats().generated_tokens < 3000 + 8 * 1500


def test_bias_and_end_token(llm):
    always = SamplingParams(temperature=0, max_tokens=4, logit_bias={65: 1000})
    assert llm.generate("hello", always).text == llm.detokenize([65] * 4)
    end = llm.info.end_tokens[0]
    ended = llm.generate("hello", SamplingParams(temperature=0, logit_bias={end: 1000}))
    assert (ended.text, ended.finish_reason) == ("", "stop")
    assert ended.choices[0].stop_token == end
    assert llm.generate("hello", SamplingParams(temperature=0, max_tokens=3, ignore_eos=True,
                                                logit_bias={end: 1000})).token_ids == [end] * 3


def test_logprobs(llm):
    assert llm.generate("hello", GREEDY).logprobs is None
    done = llm.generate("hello", dataclasses.replace(GREEDY, logprobs=3))
    assert [each.token.token_id for each in done.logprobs] == done.token_ids
    logits = llm.logits(done.prompt_token_ids + done.token_ids)[done.prompt_tokens - 1:-1]
    right = logits - np.log(np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True))
    for row, told in zip(right, done.logprobs):
        assert [each.token_id for each in told.top] == list(np.argsort(-row, kind="stable")[:3])
        assert told.top[0].logprob == pytest.approx(row.max(), abs=1e-4)
        assert told.token.logprob == told.top[0].logprob  # greedy
    assert all(each.top == [] for each in
               llm.generate("hello", dataclasses.replace(GREEDY, logprobs=0)).logprobs)


def test_choices(llm):
    params = SamplingParams(n=3, seed=5, max_tokens=8, temperature=5.0, ignore_eos=True)
    done = llm.generate("hello", params)
    assert [each.index for each in done.choices] == [0, 1, 2]
    assert len({tuple(each.token_ids) for each in done.choices}) == 3
    assert done.completion_tokens == 24


def test_prompt_logprobs(llm):
    done = llm.generate("hello", dataclasses.replace(GREEDY, prompt_logprobs=2))
    ids = done.prompt_token_ids
    assert [each.token.token_id for each in done.prompt_logprobs] == ids[1:]
    logits = llm.logits(ids).astype(np.float64)
    right = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    for i, told in enumerate(done.prompt_logprobs):
        assert told.token.logprob == pytest.approx(right[i, ids[i + 1]], abs=1e-4)
        assert len(told.top) == 2


def test_prefixes_are_computed_once(llm, tiny_path):
    prompt = "a beginning that two prompts share, of some blocks: " * 3
    first = llm.generate(prompt + "a", GREEDY)
    again = llm.generate(prompt + "b", GREEDY)
    assert again.cached_tokens >= 128 and again.prompt_tokens == first.prompt_tokens
    for params in (dataclasses.replace(GREEDY, use_prefix_cache=False),
                   dataclasses.replace(GREEDY, cache_scope="another")):
        apart = llm.generate(prompt + "b", params)
        assert apart.cached_tokens == 0 and apart.token_ids == again.token_ids
    with headrace.LLM(tiny_path, prefix_cache=False) as other:
        other.generate(prompt + "a", GREEDY)
        assert other.generate(prompt + "b", GREEDY).cached_tokens == 0


def test_timings_and_whole_context(llm):
    done = llm.generate("hello", SamplingParams(temperature=0, ignore_eos=True))
    assert done.prompt_tokens + done.completion_tokens == llm.context == 256
    assert done.finish_reason == "length"
    timings = done.timings
    assert timings.prefill_ms > 0 and timings.decode_ms > 0 and timings.queue_ms >= 0
    assert timings.decode_tokens_per_second == pytest.approx(
        1000 * (done.completion_tokens - 1) / timings.decode_ms)


def test_more_prompts_than_may_wait(tiny_path):
    with headrace.LLM(tiny_path, max_sequences=2, max_waiting=3) as llm:
        prompts = [f"prompt {i}" for i in range(30)]
        done = llm.generate(prompts, GREEDY)
        assert [each.token_ids for each in done] == [
            llm.generate(prompt, GREEDY).token_ids for prompt in prompts]


def test_tokens_there_and_back(llm):
    text = "hello, wörld \U0001f600<|im_end|>"
    ids = llm.tokenize(text)
    assert llm.detokenize(ids) == text
    assert llm.info.end_tokens[0] not in ids
    special = llm.tokenize(text, parse_special=True)
    assert special[-1] == 258 and len(special) < len(ids)
    assert llm.detokenize(special) == text
    assert llm.detokenize(special, skip_special=True) == text[:-len("<|im_end|>")]
    assert llm.detokenize(np.array(ids)) == text
    assert llm.detokenize([200]) == "\ufffd" and llm.detokenize([]) == ""


def test_same_tokens_as_the_command_line(real_path, command):
    text = "Hello, 世界! <|im_start|> don't"
    with headrace.LLM(real_path) as llm:
        for extra, options in ([], {}), (["--parse-special"], {"parse_special": True}):
            done = command("tokenize", "-m", real_path, *extra, stdin=text.encode())
            assert llm.tokenize(text, **options) == done["ids"]
