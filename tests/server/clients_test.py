#!/usr/bin/env python3
"""The official clients of OpenAI's and Anthropic's APIs, as their users call them, against the server:
requirements.txt has the packages. What a model says is nonsense here; what is tested is that every part
of an answer comes where the client looks for it. HEADRACE_BINARY names the program under test."""
import os
import unittest

import harness
from harness import ServerTest

try:
    import anthropic
    import openai
except ImportError as fault:
    raise SystemExit(f"{fault}: pip install -r requirements.txt") from fault
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it asks another host for prices otherwise
try:
    import litellm
except ImportError:
    litellm = None

USER = [{"role": "user", "content": "Say hello."}]
SET = {"ignore_eos": True}  # a field of ours: the answers have a known length


class OpenAiTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none",
                                   max_retries=0, timeout=harness.PATIENCE)
        cls.addClassCleanup(cls.client.close)

    def chat(self, **more):
        options = {"model": "tiny", "messages": USER, "max_tokens": 8, "seed": 7, "extra_body": SET}
        return self.client.chat.completions.create(**{**options, **more})

    def completion(self, **more):
        options = {"model": "tiny", "prompt": "hello", "max_tokens": 8, "seed": 7, "extra_body": SET}
        return self.client.completions.create(**{**options, **more})

    def test_models(self):
        self.assertEqual([each.id for each in self.client.models.list()], ["tiny"])
        self.assertEqual(self.client.models.retrieve("tiny").object, "model")

    def test_chat(self):
        answer = self.chat()
        self.assertEqual(answer.object, "chat.completion")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertIsInstance(answer.choices[0].message.content, str)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 8)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + 8)
        self.assertGreaterEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertTrue(answer.system_fingerprint)
        self.assertEqual(answer.model, "tiny")

    def test_typed_parts_and_max_completion_tokens(self):
        parts = [{"role": "system", "content": "Be brief."},
                 {"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "hello."}]}]
        answer = self.client.chat.completions.create(model="tiny", messages=parts, max_completion_tokens=5,
                                                     extra_body=SET)
        self.assertEqual(answer.usage.completion_tokens, 5)

    def test_streamed_chat_is_the_whole_one(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        text = "".join(choice.delta.content or "" for each in chunks for choice in each.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        ends = [choice.finish_reason for each in chunks for choice in each.choices if choice.finish_reason]
        self.assertEqual(ends, ["length"])
        with_usage = [each for each in chunks if each.usage]
        self.assertEqual(len(with_usage), 1)
        self.assertIs(with_usage[0], chunks[-1])
        self.assertEqual(with_usage[0].choices, [])
        self.assertEqual(with_usage[0].usage.completion_tokens, 8)
        self.assertEqual(len({each.id for each in chunks}), 1)

    def test_usage_only_where_it_is_wanted(self):
        self.assertFalse([each for each in self.chat(stream=True) if each.usage])

    def test_the_helper_for_streams(self):
        whole = self.chat(max_tokens=40).choices[0].message.content
        stop = whole[12:15]  # it takes an answer that ends by its length for a fault
        with self.client.chat.completions.stream(model="tiny", messages=USER, max_tokens=40, seed=7, stop=[stop],
                                                 extra_body=SET) as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, whole[:whole.index(stop)])

    def test_chat_logprobs(self):
        tokens = self.chat(logprobs=True, top_logprobs=3).choices[0].logprobs.content
        self.assertEqual(len(tokens), 8)
        for each in tokens:
            self.assertLessEqual(each.logprob, 0)
            self.assertEqual(len(each.top_logprobs), 3)
            best = [top.logprob for top in each.top_logprobs]
            self.assertEqual(best, sorted(best, reverse=True))
            self.assertIsInstance(each.bytes, list)
        streamed = [token.token for each in self.chat(logprobs=True, top_logprobs=3, stream=True)
                    for choice in each.choices if choice.logprobs for token in choice.logprobs.content]
        self.assertEqual(streamed, [each.token for each in tokens])

    def test_completion(self):
        answer = self.completion(echo=True, logprobs=2)
        self.assertEqual(answer.object, "text_completion")
        self.assertTrue(answer.choices[0].text.startswith("hello"))
        self.assertIsNone(answer.choices[0].logprobs.token_logprobs[0])
        self.assertEqual(answer.usage.completion_tokens, 8)
        self.assertEqual(len(answer.choices[0].logprobs.tokens), answer.usage.total_tokens)

    def test_embeddings(self):
        texts = ["hello", "a longer text"]
        # The client asks for base64 unless told otherwise, and unpacks it.
        packed = self.client.embeddings.create(model="tiny", input=texts)
        plain = self.client.embeddings.create(model="tiny", input=texts, encoding_format="float")
        self.assertEqual([each.index for each in packed.data], [0, 1])
        self.assertEqual(len(packed.data[0].embedding), 64)
        for one, other in zip(packed.data, plain.data):
            for a, b in zip(one.embedding, other.embedding, strict=True):
                self.assertAlmostEqual(a, b, places=6)
        self.assertAlmostEqual(sum(value * value for value in plain.data[0].embedding), 1, places=5)
        self.assertEqual(packed.usage.total_tokens, packed.usage.prompt_tokens)
        short = self.client.embeddings.create(model="tiny", input=[104, 105], dimensions=8)
        self.assertEqual(len(short.data[0].embedding), 8)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.embeddings.create(model="tiny", input="hello", dimensions=65)
        self.assertEqual(caught.exception.param, "dimensions")

    def test_completion_of_several_prompts_and_of_ids(self):
        answer = self.completion(prompt=["hello", "world"], n=2)
        self.assertEqual([each.index for each in answer.choices], [0, 1, 2, 3])
        self.assertEqual(self.completion(prompt=[104, 105]).usage.prompt_tokens, 2)
        self.assertEqual(len(self.completion(prompt=[[104, 105], [104]]).choices), 2)

    def test_streamed_completion_is_the_whole_one(self):
        text = "".join(choice.text for each in self.completion(stream=True) for choice in each.choices)
        self.assertEqual(text, self.completion().choices[0].text)

    def test_three_choices_streamed(self):
        whole = self.chat(n=3)
        texts, ends = {}, {}
        for each in self.chat(n=3, stream=True):
            for choice in each.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
                if choice.finish_reason:
                    self.assertNotIn(choice.index, ends)
                    ends[choice.index] = choice.finish_reason
        self.assertEqual(ends, {0: "length", 1: "length", 2: "length"})
        self.assertEqual(texts, {each.index: each.message.content for each in whole.choices})
        self.assertEqual(len(set(texts.values())), 3)

    def test_stop_over_tokens(self):
        whole = self.completion(prompt="hello", max_tokens=200, temperature=0).choices[0].text
        # Some characters from the middle of what it says: each is a token of its own, or more.
        stop = whole[60:64]
        at = whole.index(stop)
        for streams in (False, True):
            with self.subTest(streams=streams):
                answer = self.completion(prompt="hello", max_tokens=200, temperature=0, stop=[stop, "never said"],
                                         stream=streams)
                parts = list(answer) if streams else [answer]
                choices = [choice for each in parts for choice in each.choices]
                self.assertEqual("".join(each.text for each in choices), whole[:at])
                self.assertEqual([each.finish_reason for each in choices if each.finish_reason], ["stop"])

    def test_a_seed_gives_the_same_again(self):
        texts = {self.chat(temperature=1.0, seed=3).choices[0].message.content for _ in range(3)}
        self.assertEqual(len(texts), 1)
        self.assertNotEqual(texts, {self.chat(temperature=1.0, seed=4).choices[0].message.content})

    def test_errors_are_typed(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature=-1)
        self.assertEqual(caught.exception.param, "temperature")
        self.assertEqual(caught.exception.type, "invalid_request_error")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(max_tokens=1_000_000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        with self.assertRaises(openai.BadRequestError):
            self.chat(response_format={"type": "json_object"})
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("no-such-model")
        with self.assertRaises(openai.NotFoundError):
            self.client.moderations.create(input="x")

    def test_keys(self):
        server = self.start("tiny", "--api-key", "right")
        base = f"http://127.0.0.1:{server.port}/v1"
        with openai.OpenAI(base_url=base, api_key="wrong", max_retries=0) as client:
            with self.assertRaises(openai.AuthenticationError):
                client.models.list()
        with openai.OpenAI(base_url=base, api_key="right", max_retries=0) as client:
            self.assertEqual(len(list(client.models.list())), 1)

    def test_several_models(self):
        path = harness.model_file(self.folder, "tiny")
        server = harness.Server([harness.BINARY, "serve", "-m", f"one={path}", "-m", f"two={path}"], "-t", "1")
        self.addCleanup(server.kill)
        with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="x", max_retries=0) as client:
            self.assertEqual([each.id for each in client.models.list()], ["one", "two"])
            for name in ("one", "two"):
                answer = client.chat.completions.create(model=name, messages=USER, max_tokens=2)
                self.assertEqual(answer.model, name)
            with self.assertRaises(openai.NotFoundError) as caught:
                client.chat.completions.create(model="three", messages=USER, max_tokens=2)
            self.assertIn("one, two", str(caught.exception))

    def test_responses(self):
        options = {"model": "tiny", "input": "Say hello.", "instructions": "Be brief.", "max_output_tokens": 16,
                   "temperature": 0, "extra_body": SET}
        answer = self.client.responses.create(**options)
        self.assertEqual(answer.object, "response")
        self.assertEqual(answer.status, "incomplete")
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(answer.usage.output_tokens, 16)
        self.assertIsInstance(answer.output_text, str)
        events = list(self.client.responses.create(**options, stream=True))
        kinds = [each.type for each in events]
        self.assertEqual(kinds[0], "response.created")
        self.assertIn(kinds[-1], ("response.incomplete", "response.completed"))
        text = "".join(each.delta for each in events if each.type == "response.output_text.delta")
        self.assertEqual(text, answer.output_text)
        self.assertEqual(events[-1].response.output_text, answer.output_text)
        numbers = [each.sequence_number for each in events]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        stop = answer.output_text[4:6]
        ends = {**options, "extra_body": {**SET, "stop": [stop]}}
        with self.client.responses.stream(**ends) as stream:
            for _ in stream:
                pass
            final = stream.get_final_response()
        self.assertEqual(final.status, "completed")
        self.assertEqual(final.output_text, answer.output_text[:answer.output_text.index(stop)])

    def test_responses_of_messages(self):
        answer = self.client.responses.create(model="tiny", max_output_tokens=3, store=False,
                                              input=[{"role": "user", "content": "hello"}])
        self.assertTrue(answer.id)
        with self.assertRaises(openai.BadRequestError):  # nothing is kept that it could go on from
            self.client.responses.create(model="tiny", input="go on", previous_response_id="resp_1")


class AsyncOpenAiTest(ServerTest):
    def test_many_at_once(self):
        import asyncio

        async def ask_all():
            async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="none",
                                          max_retries=0, timeout=harness.PATIENCE) as client:
                async def ask(number):
                    stream = await client.chat.completions.create(
                        model="tiny", messages=USER, max_tokens=20, seed=number % 4, stream=True, extra_body=SET)
                    return "".join([each.choices[0].delta.content or "" async for each in stream if each.choices])
                return await asyncio.gather(*(ask(number) for number in range(32)))

        answers = asyncio.run(ask_all())
        for number in range(32):
            self.assertEqual(answers[number], answers[number % 4])
        self.assertEqual(len(set(answers)), 4)


class AnthropicTest(ServerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{cls.server.port}", api_key="none",
                                         max_retries=0, timeout=harness.PATIENCE)
        cls.addClassCleanup(cls.client.close)

    question = {"model": "tiny", "messages": USER, "max_tokens": 8, "system": "Be brief.",
                "extra_body": {**SET, "temperature": 0}}

    def test_message(self):
        answer = self.client.messages.create(**self.question)
        self.assertEqual((answer.type, answer.role), ("message", "assistant"))
        self.assertEqual(answer.stop_reason, "max_tokens")
        self.assertEqual(answer.content[0].type, "text")
        self.assertEqual(answer.usage.output_tokens, 8)
        self.assertGreater(answer.usage.input_tokens + (answer.usage.cache_read_input_tokens or 0), 8)

    def test_stream(self):
        whole = self.client.messages.create(**self.question)
        with self.client.messages.stream(**self.question) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, "max_tokens")
        self.assertEqual(final.usage.output_tokens, 8)
        kinds = [each.type for each in self.client.messages.create(**self.question, stream=True)]
        self.assertEqual((kinds[0], kinds[-1]), ("message_start", "message_stop"))

    def test_stop_sequences(self):
        plain = {**self.question, "max_tokens": 100}
        whole = self.client.messages.create(**plain).content[0].text
        stop = whole[20:23]
        answer = self.client.messages.create(**plain, stop_sequences=[stop])
        self.assertEqual((answer.stop_reason, answer.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(answer.content[0].text, whole[:whole.index(stop)])

    def test_count_tokens(self):
        count = self.client.messages.count_tokens(model="tiny", messages=USER, system="Be brief.").input_tokens
        usage = self.client.messages.create(**self.question).usage
        self.assertEqual(count, usage.input_tokens + (usage.cache_read_input_tokens or 0))

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.client.messages.create(**{**self.question, "extra_body": {"temperature": -1}})
        self.assertEqual(caught.exception.body["type"], "error")
        self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        server = self.start("tiny", "--api-key", "right")
        base = f"http://127.0.0.1:{server.port}"
        with anthropic.Anthropic(base_url=base, api_key="wrong", max_retries=0) as client:
            with self.assertRaises(anthropic.AuthenticationError):
                client.messages.create(**self.question)
        with anthropic.Anthropic(base_url=base, api_key="right", max_retries=0) as client:
            self.assertEqual(client.messages.create(**self.question).usage.output_tokens, 8)


@unittest.skipIf(litellm is None, "litellm is not installed")
class LiteLlmTest(ServerTest):
    def ask(self, provider, base, **more):
        return litellm.completion(model=f"{provider}/tiny", api_base=base, api_key="none", messages=USER, max_tokens=8,
                                  temperature=0, num_retries=0, timeout=harness.PATIENCE, **more)

    def test_both_protocols(self):
        root = f"http://127.0.0.1:{self.server.port}"
        for provider, base in (("openai", f"{root}/v1"), ("hosted_vllm", f"{root}/v1"), ("anthropic", root)):
            with self.subTest(provider):
                whole = self.ask(provider, base)
                self.assertGreater(whole.usage.completion_tokens, 0)
                text = "".join(each.choices[0].delta.content or "" for each in self.ask(provider, base, stream=True))
                self.assertEqual(text, whole.choices[0].message.content)


if __name__ == "__main__":
    harness.main()
