"""chat: the template makes the prompt, as for the command line."""
import json
import logging

import pytest

import headrace
from conftest import GREEDY
from headrace import SamplingParams

TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi there"}]


def test_one_and_many(llm):
    one = llm.chat(TALK, GREEDY)
    assert isinstance(one, headrace.Generation)
    many = llm.chat([TALK, TALK[1:]], GREEDY)
    assert many[0].token_ids == one.token_ids
    assert one.prompt_token_ids == llm.chat_tokens(TALK)
    assert many[1].prompt_token_ids == llm.chat_tokens(TALK[1:])


def test_same_prompt_as_the_command_line(llm, tiny_path, command, tmp_path):
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    for extra, generates in ([], True), (["--no-generation-prompt"], False):
        done = command("render", "-m", tiny_path, "--messages", tmp_path / "talk.json", *extra)
        assert llm.chat_tokens(TALK, add_generation_prompt=generates) == done["ids"]


def test_same_answer_as_the_command_line(real_path, command):
    done = command("run", "-m", real_path, "-p", "Name three rivers.", "--temp", 0, "-n", 16)
    with headrace.LLM(real_path) as llm:
        ours = llm.chat([{"role": "user", "content": "Name three rivers."}],
                        SamplingParams(temperature=0, max_tokens=16))
    assert (ours.text, ours.token_ids) == (done["text"], done["token_ids"])
    assert ours.prompt_tokens == done["prompt_tokens"]


def test_a_message_holds_no_control_tokens(llm):
    ids = llm.chat_tokens([{"role": "user", "content": "<|im_end|>"}])
    assert ids.count(258) == 1  # the template's own


def test_no_template(models):
    with headrace.LLM(models("base", template=None)) as llm:
        assert not llm.info.has_chat_template
        with pytest.raises(headrace.UnsupportedError, match="chat_template="):
            llm.chat(TALK, GREEDY)
        assert llm.generate("hello", GREEDY).token_ids


def test_a_template_of_ones_own(tiny_path):
    source = ("{% if messages[0]['content'] == 'no' %}{{ raise_exception('Not that.') }}{% endif %}"
              "{{ messages[0]['content'] }}{{ suffix }}{% for t in tools or [] %}{{ t['name'] }}{% endfor %}")
    with headrace.LLM(tiny_path, chat_template=source) as llm:
        ids = llm.chat_tokens([{"role": "user", "content": "a"}], tools=[{"name": "f"}],
                              template_args={"suffix": "!"})
        assert llm.detokenize(ids) == "a!f"
        with pytest.raises(headrace.InvalidArgumentError, match="Not that."):
            llm.chat([{"role": "user", "content": "no"}], GREEDY)
        done = llm.chat([[{"role": "user", "content": word}] for word in ("a", "no")], GREEDY,
                        raise_on_error=False)
        assert done[0].error is None and len(done[0].token_ids) == 12
        assert "Not that." in str(done[1].error)
    with pytest.raises(headrace.InvalidArgumentError):
        headrace.LLM(tiny_path, chat_template="{% if %}")


@pytest.mark.parametrize("messages, fault", [
    (None, TypeError), ("hello", TypeError), (5, TypeError), (["hello"], TypeError),
    ([{"role": "user", "content": {1, 2}}], TypeError),
    ([], ValueError),
    ([{"role": "user", "content": float("nan")}], ValueError),
    ([{"role": "user", "content": "\ud800"}], ValueError),
    ([{"role": "user", "content": 5}], headrace.InvalidArgumentError),
])
def test_no_conversation(llm, messages, fault):
    for use in (llm.chat, llm.chat_tokens, lambda talk: list(llm.stream_chat(talk))):
        with pytest.raises(fault):
            use(messages)


@pytest.mark.parametrize("message, fault, where", [
    ({"role": "user"}, "InvalidArgumentError", "messages[1].content"),
    ({"role": "user", "content": None}, "InvalidArgumentError", "messages[1].content"),
    ({"role": "user", "content": 5}, "InvalidArgumentError", "messages[1].content"),
    ({"content": "x"}, "InvalidArgumentError", "messages[1].role"),
    ({"role": "pirate", "content": "x"}, "InvalidArgumentError", "messages[1].role"),
    ({"role": "tool", "content": "x"}, "UnsupportedError", "messages[1].role"),
    ({"role": "assistant", "tool_calls": [{}]}, "UnsupportedError", "messages[1].tool_calls"),
    ({"role": "user", "content": [{"type": "text"}]}, "InvalidArgumentError",
     "messages[1].content[0].text"),
    ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "UnsupportedError",
     "messages[1].content[0]"),
])
def test_a_message_is_read_as_by_batch(llm, tiny_path, batch, message, fault, where):
    talk = [TALK[1], message]
    for use in (llm.chat, llm.chat_tokens, lambda each: list(llm.stream_chat(each))):
        with pytest.raises(headrace.HeadraceError) as caught:
            use(talk)
        assert (type(caught.value).__name__, caught.value.where) == (fault, where)
    answer = batch(tiny_path, talk)
    assert answer["status_code"] == 400
    assert answer["body"]["error"]["param"] == where
    assert caught.value.message in answer["body"]["error"]["message"]


def test_an_error_says_which_conversation(llm):
    with pytest.raises(ValueError, match=r"^prompt \[1\]: messages\[0\].role: ") as caught:
        llm.chat([TALK, [{"role": "x"}]], GREEDY)
    assert caught.value.index == 1 and caught.value.results[0].error is None


def test_parts_are_joined_as_by_batch(llm, tiny_path, batch):
    parts = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]
    talk = [{"role": "user", "content": parts}]
    assert llm.chat_tokens(talk) == llm.chat_tokens([{"role": "user", "content": "Hi\nthere"}])
    body = batch(tiny_path, talk)["body"]
    assert body["choices"][0]["message"]["content"] == llm.chat(talk, GREEDY).text
    assert body["usage"]["prompt_tokens"] == len(llm.chat_tokens(talk))


def test_what_is_not_read_is_logged(llm, caplog):
    talk = [{"role": "developer", "content": "Be brief."}, dict(TALK[1], colour="red")]
    with caplog.at_level(logging.WARNING, "headrace"):
        assert llm.chat_tokens(talk) == llm.chat_tokens(TALK)
    assert "messages[0].role" in caplog.text and "colour" in caplog.text


WEATHER = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]


def test_tools_that_the_template_does_not_use(llm):
    for use in (llm.chat, llm.chat_tokens,
                lambda talk, tools: llm.stream_chat(talk, tools=tools).wait()):
        with pytest.raises(headrace.UnsupportedError, match="does not use tools") as caught:
            use(TALK, tools=WEATHER)
        assert caught.value.where == "tools"
    assert llm.chat_tokens(TALK, tools=[]) == llm.chat_tokens(TALK, tools=None)


def test_tools_with_a_real_model(real_path):
    with headrace.LLM(real_path) as real, pytest.raises(headrace.UnsupportedError, match="tools"):
        real.chat(TALK, GREEDY, tools=WEATHER)


def test_tools_that_the_template_needs(tiny_path):
    with headrace.LLM(tiny_path, chat_template="{{ tools[0].function.name }}") as llm:
        assert llm.detokenize(llm.chat_tokens(TALK, tools=WEATHER)) == "weather"


@pytest.mark.parametrize("option", [
    {"tools": "abc"}, {"tools": 5}, {"tools": ["abc"]}, {"tools": WEATHER[0]}, {"tools": [5]},
    {"tools": [{"name": {1}}]}, {"template_args": "abc"}, {"template_args": ["a"]},
])
def test_template_values_of_wrong_types(llm, option):
    for use in (llm.chat, llm.chat_tokens, llm.stream_chat):
        with pytest.raises(TypeError, match=next(iter(option))):
            use(TALK, **option)


def test_a_conversation_nested_too_deep(llm):
    deep = "x"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(headrace.InvalidArgumentError, match="deep"):
        llm.chat([{"role": "user", "content": deep}], GREEDY)
    endless = []
    endless.append(endless)
    with pytest.raises(headrace.InvalidArgumentError):
        llm.chat([{"role": "user", "content": endless}], GREEDY)
