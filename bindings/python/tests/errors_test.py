"""Bad input: a clear exception, and the model stays usable (the fixture checks that at its end)."""
import copy
import dataclasses
import inspect
import math
import operator
import pickle
import re

import numpy as np
import pytest

import headrace
from conftest import GREEDY
from headrace import SamplingParams


def test_the_hierarchy():
    kinds = [getattr(headrace, name) for name in headrace.__all__ if name.endswith("Error")]
    assert all(issubclass(kind, headrace.HeadraceError) for kind in kinds) and len(kinds) == 14
    for kind in (headrace.InvalidArgumentError, headrace.OutOfRangeError,
                 headrace.ContextLengthError):
        assert issubclass(kind, ValueError)
    assert issubclass(headrace.Interrupted, KeyboardInterrupt)
    assert issubclass(headrace.DeadlineExceededError, TimeoutError)


def test_an_error_says_what_where_and_the_way_out(llm):
    with pytest.raises(headrace.ContextLengthError) as caught:
        llm.generate("x" * 1000)
    error = caught.value
    assert error.code == "context_length_exceeded" and error.where == "prompt"
    assert "1000" in error.message and "256" in error.message and error.hint
    assert str(error) == f"{error.where}: {error.message} ({error.hint})"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)


def test_options_are_named_as_keywords(tiny_path):
    for name, value in (("isa", "sse9"), ("pre_tokenizer", "none-such")):
        with pytest.raises(headrace.HeadraceError) as caught:
            headrace.LLM(tiny_path, **{name: value})
        assert caught.value.where in (name, f"{tiny_path}: {name}")


def test_all_that_is_public_says_what_it_is():
    for kind in (getattr(headrace, name) for name in headrace.__all__):
        members = vars(kind).items() if inspect.isclass(kind) else []
        assert not [f"{kind.__name__}.{name}" for name, member in members
                    if not name.startswith("_") and not inspect.getdoc(member)
                    and (isinstance(member, property) or inspect.isfunction(member))]


@pytest.mark.parametrize("code", ["io_error", "not_found", "resource_exhausted", "strange"])
def test_every_code_has_its_exception(code):
    error = headrace._errors.make_error(code, "m", "w", "give a smaller context with -c")
    assert error.code == (code if code != "strange" else "internal")
    assert str(error) == "w: m (give a smaller context with context=)"
    assert pickle.loads(pickle.dumps(error)).hint == error.hint


@pytest.mark.parametrize("prompts", [
    None, 5, 1.5, b"bytes", {"a": 1}, {"a"}, object(), iter(["a"]), ["a", None], ["a", b"b"],
    ["a", 5], [5, "a"], [1.5], [[1.5]], [[["a"]]], np.array([1.5]), [True],
])
def test_what_is_no_prompt(llm, prompts):
    with pytest.raises(TypeError) as caught:
        llm.generate(prompts, GREEDY)
    assert not isinstance(caught.value, headrace.HeadraceError)


@pytest.mark.parametrize("prompt, fault", [
    ("", headrace.InvalidArgumentError),
    ("\ud800", headrace.InvalidArgumentError),
    ("x" * 300, headrace.ContextLengthError),
    ("x" * 256, headrace.ContextLengthError),
    ([-1], headrace.OutOfRangeError),
    ([264], headrace.OutOfRangeError),
    ([10**30], headrace.OutOfRangeError),
    (np.array([], dtype=np.int32), headrace.InvalidArgumentError),
])
def test_a_prompt_that_cannot_be(llm, prompt, fault):
    with pytest.raises(fault):
        llm.generate(prompt, GREEDY)
    with pytest.raises(fault):
        list(llm.stream(prompt, GREEDY))
    with pytest.raises(fault) as caught:
        llm.generate(["hello", prompt, "hello"], GREEDY)
    results = caught.value.results
    expected = llm.generate("hello", GREEDY).token_ids
    assert [each.token_ids for each in results] == [expected, [], expected]
    assert results[1].error is caught.value and results[1].finish_reason is None
    quiet = llm.generate(["hello", prompt, "hello"], GREEDY, raise_on_error=False)
    assert [each.token_ids for each in quiet] == [expected, [], expected]
    assert isinstance(quiet[1].error, fault) and quiet[0].error is None


def test_a_text_far_too_long(llm):
    with pytest.raises(headrace.ContextLengthError, match="20000000"):
        llm.generate("x" * 20_000_000, GREEDY)


WRONG_TYPES = [
    ("temperature", "1"), ("temperature", True), ("temperature", 1j), ("top_k", 1.5),
    ("top_k", "40"), ("seed", 1.0), ("max_tokens", "5"), ("min_tokens", None), ("n", None),
    ("n", 2.0), ("priority", None), ("logit_bias", [(1, 2.0)]), ("logit_bias", {"1": 2.0}),
    ("logit_bias", {1: "2"}), ("stop_token_ids", 5), ("stop_token_ids", "5"),
    ("stop_token_ids", [1.5]), ("stop_token_ids", None), ("ignore_eos", 1), ("ignore_eos", None),
    ("stop", 5), ("stop", None), ("stop", [5]), ("stop", b"x"), ("cache_scope", None), ("cache_scope", b"x"), ("timeout", "1"), ("logprobs", True),
]


@pytest.mark.parametrize("name, value", WRONG_TYPES)
def test_params_of_wrong_types(name, value):
    with pytest.raises(TypeError, match=name):
        SamplingParams(**{name: value})


OUT_OF_RANGE = [
    ("temperature", math.nan), ("temperature", math.inf), ("temperature", -0.1),
    ("temperature", 1e300), ("temperature", 10**400), ("temperature", np.float32("nan")),
    ("top_k", -1), ("top_k", -10**30), ("top_p", 0), ("top_p", 1.5), ("top_p", math.nan),
    ("min_p", -0.5), ("min_p", 2), ("typical_p", 0.0), ("repetition_penalty", 0),
    ("repetition_penalty", math.nan), ("presence_penalty", math.inf),
    ("frequency_penalty", -math.inf), ("penalty_last_n", -2), ("seed", -1), ("seed", 2**64),
    ("max_tokens", -2), ("min_tokens", -1), ("timeout", 0), ("timeout", -1), ("timeout", math.nan),
    ("stop", ""), ("stop", ["a", ""]), ("stop", "x" * 5000), ("stop", ["x"] * 300),
    ("logit_bias", {1: math.nan}), ("logit_bias", {-1: 1.0}), ("stop_token_ids", [-1]),
    ("dry_multiplier", -1), ("dry_base", 0.5), ("dry_allowed_length", -1),
    ("dry_penalty_last_n", -2), ("dry_sequence_breakers", [""]),
    ("dry_sequence_breakers", ["x" * 200]), ("dry_sequence_breakers", ["x"] * 65),
    ("xtc_probability", 1.5), ("xtc_threshold", -0.1), ("mirostat", 3), ("mirostat_tau", -1),
    ("mirostat_eta", math.nan),
    ("n", 0), ("n", -5), ("n", 129), ("n", 10**30), ("priority", 9), ("priority", -9),
    ("logprobs", -1), ("logprobs", 21), ("prompt_logprobs", -1), ("prompt_logprobs", 1000),
]


@pytest.mark.parametrize("name, value", OUT_OF_RANGE)
def test_params_out_of_range(name, value):
    with pytest.raises(headrace.OutOfRangeError) as caught:
        SamplingParams(**{name: value})
    assert caught.value.where == name and isinstance(caught.value, ValueError)


def test_the_ends_of_the_ranges(llm):
    for each in ({"n": 128, "max_tokens": 1}, {"priority": -8}, {"priority": 8}, {"logprobs": 20},
                 {"prompt_logprobs": 20}):
        llm.generate("hello", SamplingParams(**{"max_tokens": 2, **each}))


def test_min_tokens_above_max_tokens():
    with pytest.raises(ValueError, match="min_tokens"):
        SamplingParams(max_tokens=3, min_tokens=4)


@pytest.mark.parametrize("params, fault", [
    (SamplingParams(max_tokens=1000), headrace.ContextLengthError),
    (SamplingParams(max_tokens=2**100), headrace.ContextLengthError),
    (SamplingParams(stop_token_ids=range(10_000)), headrace.OutOfRangeError),
    (SamplingParams(stop_token_ids=[264]), headrace.OutOfRangeError),
    (SamplingParams(logit_bias={264: 1.0}), headrace.OutOfRangeError),
    ({"temperature": 1.0}, TypeError), ("x", TypeError), ([GREEDY], TypeError), (5, TypeError),
])
def test_params_that_this_model_cannot_take(llm, params, fault):
    with pytest.raises(fault) as caught:
        llm.generate("hello", params)
    if isinstance(caught.value, headrace.HeadraceError):
        assert caught.value.where in SamplingParams.__dataclass_fields__ or fault is \
            headrace.ContextLengthError, caught.value


def test_time_is_up(endless):
    with pytest.raises(headrace.DeadlineExceededError) as caught:
        endless.generate("hello", SamplingParams(temperature=0, ignore_eos=True, timeout=0.3))
    late = caught.value.results[0]
    assert late.token_ids and late.finish_reason is None and isinstance(caught.value, TimeoutError)


def test_ten_thousand_stop_tokens_with_a_real_model(real_path):
    with headrace.LLM(real_path) as llm:
        plain = llm.generate("The capital of France is", GREEDY)
        far = [token for token in range(20_000, 30_100) if token not in plain.token_ids]
        done = llm.generate("The capital of France is",
                            SamplingParams(temperature=0, max_tokens=12, ignore_eos=True,
                                           stop_token_ids=far[:10_000]))
        assert done.token_ids == plain.token_ids


def test_lists_of_params(llm):
    with pytest.raises(headrace.InvalidArgumentError):
        llm.generate(["a", "b"], [GREEDY])
    with pytest.raises(TypeError):
        llm.generate(["a", "b"], [GREEDY, 5])
    with pytest.raises(TypeError):
        llm.generate(["a", "b"], "ab")
    with pytest.raises(TypeError):
        llm.generate("a", GREEDY, raise_on_error=1)


def test_params_are_values():
    params = SamplingParams(temperature=np.float32(0.5), top_k=np.int64(3), stop_token_ids=[1, 2])
    assert params == SamplingParams(temperature=0.5, top_k=3, stop_token_ids=(1, 2))
    assert type(params.top_k) is int and pickle.loads(pickle.dumps(params)) == params
    with pytest.raises(AttributeError):
        params.temperature = 1.0


def test_params_are_keys():
    params = SamplingParams(logit_bias={1: 2, 3: 4.0}, stop=["a"], temperature=1)
    same = SamplingParams(logit_bias={3: 4.0, 1: 2.0}, stop="a", temperature=1.0)
    other = dataclasses.replace(params, logit_bias={1: 2})
    assert hash(params) == hash(same) and {params: 1, other: 2}[same] == 1 and params != other
    for copied in (pickle.loads(pickle.dumps(params)), copy.deepcopy(params), copy.copy(params)):
        assert copied == params and hash(copied) == hash(params)
    assert dataclasses.asdict(params)["logit_bias"] == {1: 2.0, 3: 4.0}
    for change in (lambda bias: bias.update({5: 1.0}), lambda bias: bias.pop(1),
                   lambda bias: bias.clear(), lambda bias: operator.setitem(bias, 1, math.nan)):
        with pytest.raises(TypeError, match="replace"):
            change(params.logit_bias)
    assert params == same


def test_an_error_says_which_prompt(llm):
    with pytest.raises(headrace.ContextLengthError, match=r"^prompt \[1\]: the ") as caught:
        llm.generate(["fine", "x" * 300, ""], GREEDY)
    assert caught.value.index == 1 and pickle.loads(pickle.dumps(caught.value)).index == 1
    assert [each.error and each.error.index for each in caught.value.results] == [None, 1, 2]
    with pytest.raises(ValueError, match=r"^prompt \[1\]: stop_token_ids: ") as caught:
        llm.generate(["a", "b"], [GREEDY, SamplingParams(stop_token_ids=[264])])
    assert caught.value.index == 1
    talk = [{"role": "user", "content": "x"}]
    with pytest.raises(headrace.InvalidArgumentError) as caught:
        llm.generate("", GREEDY)
    assert caught.value.index is None and str(caught.value) == "prompt: the prompt is empty"
    for use, name in ((lambda: llm.generate(["a", None]), "prompts[1]"),
                      (lambda: llm.generate(["a", [1.5]]), "prompts[1]"),
                      (lambda: llm.generate(["a", "b"], [GREEDY, 5]), "params[1]"),
                      (lambda: llm.chat([talk, ["x"]]), "messages[1]")):
        with pytest.raises(TypeError, match="^" + re.escape(name)):
            use()


@pytest.mark.parametrize("call", [
    lambda llm: llm.tokenize(5), lambda llm: llm.tokenize(b"x"), lambda llm: llm.tokenize(None),
    lambda llm: llm.tokenize("x", add_special=1), lambda llm: llm.detokenize("x"),
    lambda llm: llm.detokenize([None]), lambda llm: llm.detokenize([1.0]),
])
def test_tokens_of_wrong_types(llm, call):
    with pytest.raises(TypeError):
        call(llm)


def test_tokens_out_of_range(llm):
    for ids in ([-1], [264], [2**40], [10**30]):
        with pytest.raises(headrace.OutOfRangeError, match="264"):
            llm.detokenize(ids)
    with pytest.raises(headrace.InvalidArgumentError):
        llm.tokenize("\udfff")
