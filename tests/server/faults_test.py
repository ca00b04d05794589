#!/usr/bin/env python3
"""What a server does about faults of those who ask it: bodies that are none, queues, deadlines, clients
that go or do not read. Each line of the contract, against the program on loopback; HEADRACE_BINARY
names it."""
import json
import socket
import time

import harness
from harness import CHAT, COMPLETIONS, CONTEXT, LONG, MIB, SHORT, USER, ServerTest


class BodyTest(ServerTest):
    def refused(self, body, param=None, path=CHAT):
        error = self.assert_error(self.server.post(path, body), 400, type="invalid_request_error")
        if param is not None:
            self.assertEqual(error["param"], param, error)
        return error

    def test_json_that_is_none(self):
        for body in (b"", b"{", b"}", b"nul", b"{'a':1}", b'{"a":1,}', b'{"a":1}x', b'{"a":01}',
                     b'{"a":NaN}', b'{"a":"\t"}', b'{"a":"\\x"}', b'{"a":"\\ud800"}', b"\xef\xbb\xbf",
                     b"\0", b"[" * 10000, b"[1]", b'"text"', b"null", b"7"):
            with self.subTest(body=body[:20]):
                self.refused(body)
        self.assertEqual(self.server.post(CHAT, USER).status, 200)

    def test_text_that_is_not_utf8(self):
        for text in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc4\xe3\xba\xc3"):
            with self.subTest(text=text):
                self.refused(b'{"messages":[{"role":"user","content":"' + text + b'"}]}')
                self.refused(b'{"prompt":"' + text + b'"}', path=COMPLETIONS)

    def test_depth(self):
        for path in (CHAT, COMPLETIONS, "/v1/messages", "/v1/responses", "/tokenize"):
            deep = b'{"prompt":"a","x":' + b"[" * 100 + b"]" * 100 + b"}"
            self.assertEqual(self.server.post(path, deep).status, 400)
        fine = b'{"prompt":"a","max_tokens":1,"x":' + b"[" * 50 + b"]" * 50 + b"}"
        self.assertEqual(self.server.post(COMPLETIONS, fine).status, 200)

    def test_types_and_ranges_name_the_field(self):
        for field, value in (("max_tokens", "three"), ("max_tokens", -2), ("temperature", "hot"),
                             ("temperature", -1), ("temperature", 1e400), ("top_p", 2), ("top_k", 1.5), ("n", 0),
                             ("n", 1e9), ("stop", 7), ("stream", "yes"), ("seed", {}), ("logit_bias", []),
                             ("messages", "hello"), ("messages", []), ("messages", {"messages": []}),
                             ("presence_penalty", True), ("timeout_ms", -5), ("stream_options", 1)):
            with self.subTest(field=field, value=value):
                body = json.dumps({**USER, field: value}).replace("Infinity", "1e400").encode()
                error = self.refused(body)
                self.assertIn(field, f"{error['param']} {error['message']}")
        self.refused({"max_tokens": 3}, "messages")
        self.refused({"max_tokens": 3}, "prompt", COMPLETIONS)
        error = self.refused({"messages": [{"role": "wizard", "content": "x"}]})
        self.assertIn("role", error["param"])

    def test_prompts_are_cut_only_on_request(self):
        long = {"prompt": "a b " * (3 * MIB // 4), "max_tokens": 3, "ignore_eos": True}
        self.refused(long, "prompt", COMPLETIONS)
        reply = self.server.post(COMPLETIONS, {**long, "truncate_prompt_tokens": -1})
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(reply.json()["usage"]["prompt_tokens"], CONTEXT - 3)
        self.assertIn(f"{CONTEXT - 3} tokens were kept", reply.json()["warnings"][0])
        turns = [{"role": "user" if i % 2 == 0 else "assistant", "content": "word " * 200} for i in range(41)]
        chat = {"messages": [{"role": "system", "content": "Be brief."}, *turns], "max_tokens": 3}
        self.refused(chat, path=CHAT)
        reply = self.server.post(CHAT, {**chat, "truncate_prompt_tokens": 3000})
        self.assertEqual(reply.status, 200, reply)
        self.assertLessEqual(reply.json()["usage"]["prompt_tokens"], 3000)
        self.assertIn("of 42 messages were left out", reply.json()["warnings"][0])
        for truncation, status in (("disabled", 400), ("auto", 200)):
            reply = self.server.post("/v1/responses", {"input": turns, "max_output_tokens": 3, "truncation": truncation})
            self.assertEqual(reply.status, status, reply)
        self.assertEqual(reply.json()["truncation"], "auto")
        self.assertIn("truncation: ", reply.json()["warnings"][0])

    def test_unknown_fields_are_told(self):
        reply = self.server.post(CHAT, {**USER, "frobnicate": 7})
        self.assertEqual(reply.status, 200, reply)
        self.assertTrue(any("frobnicate" in each for each in reply.json()["warnings"]), reply.json())

    def test_constraints_fail_closed(self):
        for field, value in (("response_format", {"type": "json_object"}), ("grammar", 'root ::= "a"'),
                             ("json_schema", {}), ("structured_outputs", {"regex": "a"}),
                             ("guided_choice", ["a"]), ("guided_json", {}), ("guided_regex", "a")):
            with self.subTest(field=field):
                error = self.refused({**USER, field: value})
                self.assertIn(field, f"{error['param']} {error['message']}")

    def test_context_length_with_both_numbers(self):
        for body in ({"prompt": "ab" * CONTEXT}, {"prompt": "hello", "max_tokens": 2 * CONTEXT}):
            error = self.refused(body, path=COMPLETIONS)
            self.assertEqual(error["code"], "context_length_exceeded", error)
            self.assertIn(str(CONTEXT), error["message"])
            self.assertIn(str(2 * CONTEXT), error["message"])
        self.assertEqual(self.server.post(COMPLETIONS, SHORT).status, 200)

    def test_context_that_the_kv_memory_has_not(self):
        server = self.start("tiny", "--kv-memory", "256K")
        room = server.get("/props").json()["default_generation_settings"]["n_ctx"]
        self.assertLess(room, CONTEXT)
        for body in ({"prompt": "a" * 3000}, {"prompt": "a", "max_tokens": 3000}):
            error = self.assert_error(server.post(COMPLETIONS, body), 400, code="context_length_exceeded")
            self.assertIn("3000", error["message"])
            self.assertIn(str(room), error["message"])
        self.assertEqual(server.post(COMPLETIONS, SHORT).status, 200)


class QueueTest(ServerTest):
    model = "slow"
    options = ("-np", "1", "--max-queue", "2")

    def test_overflow(self):
        waiting = [self.server.connect() for _ in range(3)]
        for connection in waiting:
            self.addCleanup(connection.close)
            connection.request("POST", COMPLETIONS, {**LONG, "stream": True})
        self.server.wait_until(lambda: self.server.metric("vllm:num_requests_waiting") >= 2, "that two wait")
        times = []
        for _ in range(20):
            begun = time.monotonic()
            reply = self.server.post(COMPLETIONS, SHORT)
            times.append(time.monotonic() - begun)
            self.assert_error(reply, 429, type="rate_limit_error")
            self.assertTrue(1 <= int(reply.headers["retry-after"]) <= 120, reply)
        self.assert_error(self.server.post("/v1/messages", USER), 429, True, type="rate_limit_error")
        self.assertLess(sorted(times)[len(times) // 2], 1.0)
        print(f"median time of a 429: {1e3 * sorted(times)[len(times) // 2]:.1f} ms")
        self.assertEqual(self.server.get("/livez").status, 200)
        for connection in waiting:
            connection.close()
        self.server.wait_until_idle()
        self.server.wait_until(lambda: self.server.post(COMPLETIONS, SHORT).status == 200, "room again")
        self.assertGreaterEqual(self.server.metric("headrace:requests_refused_total", status="429"), 20)


class DeadlineTest(ServerTest):
    model = "slow"
    options = ("-np", "1")

    def test_in_the_queue(self):
        with self.server.connect() as first:
            first.request("POST", COMPLETIONS, {**LONG, "stream": True})
            self.server.wait_until(lambda: self.server.num_running() == 1, "that one runs")
            for streams in (False, True):
                reply = self.server.post(COMPLETIONS, {**SHORT, "timeout_ms": 300, "stream": streams})
                self.assert_error(reply, 504)
        self.server.wait_until_idle()

    def test_in_the_middle_of_a_stream(self):
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, {**LONG, "stream": True, "timeout_ms": 1500})
            status, _ = connection.head()
            if status == 504:
                self.skipTest("this machine is too slow: no token in 1.5 s")
            events = list(connection.events())
        self.assertIn("error", json.loads(events[-1]))
        self.assertNotIn("[DONE]", events)
        self.server.wait_until_idle()

    def test_signs_of_life_before_the_first_token(self):
        server = self.start("slow", "-np", "1", "--keep-alive", "0.2")
        with server.connect() as first, server.connect() as second:
            first.request("POST", COMPLETIONS, {**LONG, "stream": True})
            server.wait_until(lambda: server.num_running() == 1, "that one runs")
            # Too soon for a stream: the time that has passed is a status.
            self.assert_error(server.post(COMPLETIONS, {**SHORT, "timeout_ms": 50, "stream": True}), 504)
            second.request("POST", COMPLETIONS, {**SHORT, "timeout_ms": 2000, "stream": True})
            status, headers = second.head()
            self.assertEqual(status, 200)
            self.assertIn("text/event-stream", headers["content-type"])
            chunks = list(iter(second.chunk, b""))
            self.assertIn(b": keep-alive\n\n", chunks)
            event = chunks[-1].decode()
            self.assertEqual(json.loads(event.partition("data: ")[2])["error"]["code"], "deadline_exceeded", chunks)
            self.assertNotIn(b"[DONE]", b"".join(chunks))
        server.wait_until_idle()

    def test_whole_answers(self):
        failed = self.server.metric("vllm:request_success_total", finished_reason="error")
        self.assert_error(self.server.post(COMPLETIONS, {**LONG, "timeout_ms": 1000}), 504)
        self.server.wait_until(lambda: self.server.metric(
            "vllm:request_success_total", finished_reason="error") == failed + 1, "that it is counted")
        self.assertEqual(self.server.post(COMPLETIONS, {**SHORT, "timeout_ms": 100_000}).status, 200)


class ClientGoneTest(ServerTest):
    model = "slow"
    options = ("-np", "1")
    gone = "headrace:clients_gone_total"

    def leave(self, phase, body, is_there):
        """A client that goes as soon as `is_there` holds; counted for `phase`, and nothing runs on."""
        before = self.server.metric(self.gone, phase=phase)
        aborted = self.server.metric("vllm:request_success_total", finished_reason="abort")
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, body)
            self.server.wait_until(lambda: is_there(connection), "the phase")
        self.server.wait_until(lambda: self.server.metric(self.gone, phase=phase) == before + 1,
                               f"that the one gone in {phase} is counted")
        self.server.wait_until(lambda: self.server.metric(
            "vllm:request_success_total", finished_reason="abort") == aborted + 1, "that it is told as aborted")

    def test_in_the_queue(self):
        with self.server.connect() as first:
            first.request("POST", COMPLETIONS, {**LONG, "stream": True, "max_tokens": 1500})
            status, _ = first.head()
            self.assertEqual(status, 200)
            for streams in (False, True):
                self.leave("queue", {**LONG, "prompt": "b", "stream": streams},
                           lambda _: self.server.metric("vllm:num_requests_waiting") == 1)
                self.assertEqual(self.server.metric("vllm:num_requests_waiting"), 0)
            self.assertEqual(self.server.num_running(), 1)  # the other goes on
        self.server.wait_until_idle()

    def test_in_prefill(self):
        for streams in (False, True):
            prompt = ("xy" if streams else "uv") * 2000
            self.leave("prefill", {"prompt": prompt, "max_tokens": 2, "stream": streams},
                       lambda _: self.server.num_running() == 1)
            self.server.wait_until_idle()

    def test_in_decode(self):
        def has_begun(connection):
            return connection.socket.recv(1, socket.MSG_PEEK)

        self.leave("decode", {**LONG, "stream": True}, has_begun)
        self.server.wait_until_idle()
        before = self.server.metric("vllm:generation_tokens_total")
        self.leave("decode", {**LONG, "stream": False},
                   lambda _: self.server.metric("vllm:generation_tokens_total") > before)
        self.server.wait_until_idle()
        self.assertEqual(self.server.post(COMPLETIONS, SHORT).status, 200)


class SlowReaderTest(ServerTest):
    model = "tiny"
    options = ("-np", "4", "--stall-timeout", "4")

    def test_it_pauses_is_cut_and_counted(self):
        body = {**LONG, "stream": True, "logprobs": 20, "n": 4, "max_tokens": 3500}
        before = self.server.metric("headrace:slow_clients_total")
        with self.server.connect(receive_buffer=4096) as reader:
            reader.request("POST", COMPLETIONS, body)
            self.server.wait_until(lambda: self.server.metric("headrace:num_requests_paused") > 0, "a pause")
            # The others go on meanwhile.
            begun = time.monotonic()
            self.assertEqual(self.server.post(COMPLETIONS, SHORT).status, 200)
            print(f"another's answer took {time.monotonic() - begun:.2f} s")
            self.server.wait_until(lambda: self.server.metric("headrace:slow_clients_total") == before + 1,
                                   "that it is cut and counted")
            self.server.wait_until_idle()
            with self.assertRaises((EOFError, ConnectionResetError, ValueError, AssertionError)):
                reader.reply()  # what it gets is not whole

    def test_one_that_reads_late_gets_all(self):
        body = {**LONG, "stream": True, "logprobs": 20, "max_tokens": 3500}
        with self.server.connect(receive_buffer=4096) as reader:
            reader.request("POST", COMPLETIONS, body)
            self.server.wait_until(lambda: self.server.metric("headrace:num_requests_paused") > 0, "a pause")
            self.assertEqual(reader.head()[0], 200)
            events = list(reader.events())
        self.assertEqual(events[-1], "[DONE]")
        tokens = [token for each in events[:-1] for choice in json.loads(each)["choices"]
                  for token in (choice["logprobs"] or {"tokens": []})["tokens"]]
        self.assertEqual(len(tokens), 3500)


if __name__ == "__main__":
    harness.main()
