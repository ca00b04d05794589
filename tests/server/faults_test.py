#!/usr/bin/env python3
"""What a server does about faults of those who ask it, of its models and of time: each line of the
contract, against the program on loopback. HEADRACE_BINARY names it, HEADRACE_CHECKSUM_SERVER the one
with the checksum model."""
import contextlib
import json
import os
import resource
import socket
import ssl
import subprocess
import time

import harness
from harness import CONTEXT, PATIENCE, ServerTest

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
LONG = {"prompt": "a", "max_tokens": 3000, "ignore_eos": True, "temperature": 0}
SHORT = {"prompt": "hello", "max_tokens": 3, "ignore_eos": True, "temperature": 0}
USER = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
MIB = 1 << 20


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


class SizeTest(ServerTest):
    def test_body_with_a_length(self):
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Content-Length": str(9 * MIB)})
            self.assert_error(connection.reply(), 413)  # before anything of it was sent
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Content-Length": "9" * 30})
            self.assertIn(connection.reply().status, (400, 413))

    def test_body_in_chunks(self):
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Transfer-Encoding": "chunked"})
            chunk = b"%x\r\n" % MIB + b" " * MIB + b"\r\n"
            try:
                for _ in range(9):
                    connection.send(chunk)
            except (BrokenPipeError, ConnectionResetError):
                pass
            self.assert_error(connection.reply(), 413)

    def test_body_that_asks_first(self):
        headers = {"Content-Length": str(9 * MIB), "Expect": "100-continue"}
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, headers)
            status, _ = connection.head()
            self.assertEqual(status, 413)  # and no "100 Continue" before
        body = json.dumps(USER).encode()
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Content-Length": str(len(body)), "Expect": "100-continue"})
            self.assertEqual(connection.head()[0], 100)
            connection.send(body)
            self.assertEqual(connection.reply().status, 200)
        with self.server.connect() as connection:
            connection.request("POST", CHAT, body, {"Expect": "a-pony"})
            self.assert_error(connection.reply(), 417)

    def test_a_body_of_seven_mebibytes_is_read(self):
        reply = self.server.post(COMPLETIONS, {"prompt": "a", "max_tokens": 1, "user": " " * 7 * MIB})
        self.assertIn(reply.status, (200, 400), reply)

    def test_chunks_make_a_body(self):
        body = json.dumps(USER).encode()
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Transfer-Encoding": "chunked"})
            for byte in body:
                connection.send(b"1;extension=x\r\n" + bytes([byte]) + b"\r\n")
            connection.send(b"0\r\nTrailer: x\r\n\r\n")
            self.assertEqual(connection.reply().status, 200)

    def test_headers(self):
        self.assert_error(self.server.get("/health", {"X-Long": "a" * 17_000}), 431)
        many = {f"X-{i}": "a" for i in range(70)}
        self.assert_error(self.server.get("/health", many), 431)
        some = {f"X-{i}": "a" for i in range(50)}
        self.assertEqual(self.server.get("/health", some).status, 200)

    def test_address(self):
        self.assert_error(self.server.get("/" + "a" * 9_000), 414)
        self.assert_error(self.server.get("/" + "a" * 40_000), 414)
        self.assert_error(self.server.get("/" + "a" * 7_000), 404)


class HttpTest(ServerTest):
    def raw(self, data):
        with self.server.connect() as connection:
            connection.send(data)
            return connection.reply()

    def test_smuggling(self):
        inner = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for name, headers, body in (
                ("both", "Content-Length: 4\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + inner),
                ("both, the other way", "Transfer-Encoding: chunked\r\nContent-Length: 4", "0\r\n\r\n" + inner),
                ("two lengths", "Content-Length: 4\r\nContent-Length: 5", "12345" + inner),
                ("a list of lengths", "Content-Length: 4, 5", "12345" + inner),
                ("signed", "Content-Length: +4", "1234" + inner),
                ("negative", "Content-Length: -1", inner),
                ("hex", "Content-Length: 0x4", "1234" + inner),
                ("unknown coding", "Transfer-Encoding: gzip, identity", inner),
                ("chunked is not last", "Transfer-Encoding: chunked, gzip", "0\r\n\r\n" + inner),
                ("chunk size", "Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n" + inner),
                ("negative chunk", "Transfer-Encoding: chunked", "-1\r\n{}\r\n0\r\n\r\n" + inner),
                ("huge chunk", "Transfer-Encoding: chunked", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n" + inner),
                ("chunk of another length", "Transfer-Encoding: chunked", "1\r\n{}\r\n0\r\n\r\n" + inner),
                ("two codings", "Transfer-Encoding: gzip, chunked", "0\r\n\r\n" + inner),
                ("a coding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + inner),
                ("space before colon", "Content-Length : 4", "1234" + inner),
                ("folded", "X: a\r\n b: c\r\nTransfer-Encoding: chunked\r\n Content-Length: 4", inner),
        ):
            with self.subTest(name), self.server.connect() as connection:
                connection.send(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n\r\n{body}")
                reply = connection.reply()
                self.assertTrue(400 <= reply.status < 500 or reply.status == 501, reply)
                # What came behind is not taken for a request of its own.
                self.assertEqual(connection.file.read(), b"")

    def test_lines_that_end_badly(self):
        for data in (b"GET /livez HTTP/1.1\nHost: localhost\n\n", b"GET /livez\r\n\r\n", b"\0\0\0\0\r\n\r\n",
                     b"GET  /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /livez HTTP/9.9\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                     b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX y\r\n\r\n",
                     b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: \x01\r\n\r\n"):
            with self.subTest(data=data[:30]):
                reply = self.raw(data)
                self.assert_error(reply, 400)

    def test_host_is_needed_once(self):
        self.assert_error(self.raw(b"GET /livez HTTP/1.1\r\n\r\n"), 400)
        self.assert_error(self.raw(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: a\r\n\r\n"), 400)

    def test_keep_alive_and_pipelining(self):
        with self.server.connect() as connection:
            for _ in range(3):
                connection.request("GET", "/livez")
                self.assertEqual(connection.reply().status, 200)
            connection.request("GET", "/nothing")
            connection.request("POST", COMPLETIONS, SHORT)
            connection.request("GET", "/livez")
            self.assertEqual([connection.reply().status for _ in range(3)], [404, 200, 200])
            connection.request("GET", "/livez", headers={"Connection": "close"})
            self.assertEqual(connection.reply().status, 200)
            self.assertTrue(connection.is_closed())

    def test_a_refusal_keeps_the_connection(self):
        with self.server.connect() as connection:
            for body in ({}, SHORT, {"prompt": "GET /livez HTTP/1.1\r\n\r\n"}):
                connection.request("POST", "/nothing", body)
                self.assert_error(connection.reply(), 404)
            connection.request("GET", "/livez")
            self.assertEqual(connection.reply().status, 200)
            # A body that has not come is not waited for.
            connection.request("POST", "/nothing", None, {"Content-Length": "1000"})
            reply = connection.reply()
            self.assert_error(reply, 404)
            self.assertEqual(reply.headers["connection"], "close")
            self.assertTrue(connection.is_closed())

    def test_a_stream_ends_and_the_connection_goes_on(self):
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, {**SHORT, "stream": True})
            self.assertEqual(connection.head()[0], 200)
            self.assertEqual(list(connection.events())[-1], "[DONE]")
            connection.request("GET", "/livez")
            self.assertEqual(connection.reply().status, 200)

    def test_head(self):
        with self.server.connect() as connection:
            connection.request("HEAD", "/livez")
            reply = connection.reply(to_head=True)
            self.assertEqual(reply.status, 200)
            self.assertGreater(int(reply.headers["content-length"]), 0)
            connection.request("GET", "/livez")  # no byte of a body came before it
            self.assertEqual(connection.reply().status, 200)

    def test_what_stands_around_chunks_is_bounded(self):
        for start in (b"5;", b"5\r\nhello\r\n0\r\nX: "):
            with self.subTest(start), self.server.connect() as connection:
                connection.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
                with contextlib.suppress(ConnectionError):  # it need not read on
                    connection.send(start + b"x" * (1 << 20))
                with contextlib.suppress(ConnectionError):
                    self.assertIn(connection.reply().status, (400, 413, 431))

    def test_http_1_0(self):
        with self.server.connect() as connection:
            connection.request("GET", "/livez", version="1.0")
            self.assertEqual(connection.reply().status, 200)
            self.assertTrue(connection.is_closed())
        with self.server.connect() as connection:
            connection.request("GET", "/livez", version="1.0", headers={"Host": None})
            self.assertEqual(connection.reply().status, 200)  # as a simple probe asks
        with self.server.connect() as connection:
            connection.request("GET", "/v1/models", version="1.0", headers={"Host": None})
            self.assert_error(connection.reply(), 403)  # a name that is on no list
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, {**SHORT, "stream": True}, version="1.0")
            reply = connection.reply()
            self.assertNotIn("transfer-encoding", reply.headers)
            self.assertTrue(reply.body.endswith(b"data: [DONE]\n\n"), reply)

    def test_addresses_that_are_none(self):
        self.assert_error(self.server.get("/v1/nothing"), 404)
        self.assert_error(self.server.get("/../../etc/passwd"), 404)
        self.assert_error(self.server.get("/assets/..%2f..%2fetc%2fpasswd"), 404)
        self.assert_error(self.server.get(CHAT), 405)
        self.assert_error(self.server.post("/health", {}), 405)
        self.assert_error(self.server.ask("DELETE", "/v1/models"), 405)
        self.assertIn(self.raw(b"BREW /pot HTTP/1.1\r\nHost: localhost\r\n\r\n").status, (400, 404, 405))

    def test_request_ids_are_ours(self):
        reply = self.server.get("/livez", {"X-Request-Id": "theirs"})
        self.assertTrue(reply.headers["x-request-id"].startswith("req-"))
        self.assertNotEqual(reply.headers["x-request-id"], self.server.get("/livez").headers["x-request-id"])


class TimeTest(ServerTest):
    options = ("--header-timeout", "1", "--body-timeout", "1", "--idle-timeout", "2")

    def test_slow_header(self):
        with self.server.connect() as connection:
            connection.send("GET /livez HTTP/1.1\r\nHost: local")
            self.assert_error(connection.reply(), 408)
            self.assertTrue(connection.is_closed())

    def test_a_header_that_trickles(self):
        with self.server.connect() as connection:
            begun = time.monotonic()
            try:
                while time.monotonic() < begun + PATIENCE:
                    connection.send("X")
                    connection.socket.settimeout(0.3)
                    try:
                        if connection.socket.recv(1, socket.MSG_PEEK):
                            break
                    except TimeoutError:
                        pass
            except (BrokenPipeError, ConnectionResetError):
                self.fail("cut without an answer")
            connection.socket.settimeout(PATIENCE)
            self.assert_error(connection.reply(), 408)

    def test_slow_body(self):
        for headers in ({"Content-Length": "100"}, {"Transfer-Encoding": "chunked"}):
            with self.subTest(headers), self.server.connect() as connection:
                connection.request("POST", CHAT, None, headers)
                connection.send("1")
                self.assert_error(connection.reply(), 408)
                self.assertTrue(connection.is_closed())

    def test_idle_connections_end(self):
        with self.server.connect() as connection:
            connection.request("GET", "/livez")
            connection.reply()
            self.assertTrue(connection.is_closed())


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


class AccessTest(ServerTest):
    options = ("--api-key", "right", "--allowed-origin", "https://page.example")

    def test_keys(self):
        refused = self.server.post(CHAT, USER)
        self.assert_error(refused, 401, type="authentication_error", code="invalid_api_key")
        self.assertIn("www-authenticate", refused.headers)
        for headers in ({"Authorization": "Bearer wrong"}, {"X-Api-Key": "righ"}, {"Authorization": "right"},
                        {"Authorization": "Basic cmlnaHQ="}, {"Authorization": "Bearer "}):
            self.assert_error(self.server.post(CHAT, USER, headers), 401)
        for headers in ({"Authorization": "Bearer right"}, {"authorization": "bearer right"}, {"X-Api-Key": "right"}):
            self.assertEqual(self.server.post(CHAT, USER, headers).status, 200)

    def test_a_refused_body_is_not_read(self):
        with self.server.connect() as connection:
            connection.request("POST", CHAT, None, {"Content-Length": str(MIB)})
            self.assert_error(connection.reply(), 401)

    def test_what_is_public(self):
        for path in ("/livez", "/readyz", "/health", "/"):
            self.assertEqual(self.server.get(path).status, 200, path)
        for path in ("/metrics", "/props", "/slots", "/v1/models", "/dashboard/data", "/explain/x", "/nothing",
                     "/v1/models/tiny", "//health", "/health/", "/health%2f..%2fmetrics"):
            self.assert_error(self.server.get(path), 401)
        for path in (CHAT, COMPLETIONS, "/v1/responses", "/v1/messages", "/completion", "/tokenize",
                     "/detokenize", "/apply-template", "/v1/messages/count_tokens"):
            self.assertEqual(self.server.post(path, {}).status, 401, path)

    def test_anthropics_errors_have_its_shape(self):
        right = {"X-Api-Key": "right"}
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            for status, kind, reply in (
                    (401, "authentication_error", self.server.post(path, {})),
                    (401, "authentication_error", self.server.post(path, {}, {"X-Api-Key": "wrong"})),
                    (403, "permission_error", self.server.post(path, {}, {**right, "Host": "evil.example"})),
                    (405, "invalid_request_error", self.server.get(path, right)),
                    (404, "not_found_error", self.server.post(path + "/x", {}, right)),
                    (413, "request_too_large",
                     self.server.post(path, None, {**right, "Content-Length": str(9 * MIB)})),
                    (400, "invalid_request_error", self.server.post(path, b"{", right))
            ):
                with self.subTest(path=path, status=status):
                    self.assert_error(reply, status, True, type=kind)
        self.assert_error(self.server.post("/v1/messagesx", {}, right), 404, type="invalid_request_error")

    def test_errors_have_openais_types(self):
        right = {"X-Api-Key": "right"}
        self.assert_error(self.server.get("/v1/models/x", right), 404, type="invalid_request_error",
                          code="model_not_found", param="model")
        self.assert_error(self.server.get(CHAT, right), 405, type="invalid_request_error")
        self.assert_error(self.server.get("/nothing", right), 404, type="invalid_request_error")

    def test_host(self):
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "169.254.169.254"):
            self.assert_error(self.server.get("/", {"Host": host}), 403)
            self.assert_error(self.server.get("/v1/models", {"Host": host, "Authorization": "Bearer right"}), 403)
            self.assertEqual(self.server.get("/livez", {"Host": host}).status, 200)  # probes know no names
        for host in ("localhost", "LOCALHOST:8080", "127.0.0.1", f"127.0.0.1:{self.server.port}", "[::1]:1"):
            self.assertEqual(self.server.get("/", {"Host": host}).status, 200, host)

    def test_origin(self):
        key = {"Authorization": "Bearer right"}
        for origin in ("https://evil.example", "null", "http://localhost:1"):
            self.assert_error(self.server.post(CHAT, USER, {**key, "Origin": origin}), 403)
        own = {**key, "Host": "localhost:8080", "Origin": "http://localhost:8080"}
        reply = self.server.post(CHAT, USER, own)
        self.assertEqual(reply.status, 200)
        self.assertNotIn("access-control-allow-origin", reply.headers)
        for body in (USER, {**USER, "stream": True}, {}):
            reply = self.server.post(CHAT, body, {**key, "Origin": "https://page.example"})
            self.assertEqual(reply.status, 200 if body else 400)
            self.assertEqual(reply.headers["access-control-allow-origin"], "https://page.example")

    def test_preflight(self):
        ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        reply = self.server.ask("OPTIONS", CHAT, None, {**ask, "Origin": "https://page.example"})
        self.assertEqual(reply.status, 204)
        self.assertEqual(reply.headers["access-control-allow-origin"], "https://page.example")
        self.assertIn("authorization", reply.headers["access-control-allow-headers"].lower())
        reply = self.server.ask("OPTIONS", CHAT, None, {**ask, "Origin": "https://evil.example"})
        self.assertEqual(reply.status, 403)
        self.assertNotIn("access-control-allow-origin", reply.headers)

    def test_the_page_is_guarded(self):
        headers = self.server.get("/").headers
        self.assertIn("default-src", headers["content-security-policy"])
        self.assertEqual(headers["x-content-type-options"], "nosniff")


    def explain(self, *args, **env):
        return subprocess.run([harness.BINARY, "explain", *args, "--url", f"http://127.0.0.1:{self.server.port}"],
                              capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **env})

    def test_where_explain_has_its_key_from(self):
        name = self.server.post(CHAT, USER, {"X-Api-Key": "right"}).json()["id"]
        keys = self.folder / "explain-keys.txt"
        keys.write_text("# ours\nright owner=a\nother\n")
        done = self.explain(name)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("HEADRACE_API_KEY", done.stderr)
        for args, env in ((("--api-key", "right"), {}), (("--api-key-file", keys), {}),
                          ((), {"HEADRACE_API_KEY": "right"}),
                          (("--api-key-file", keys), {"HEADRACE_API_KEY": "wrong"}),  # what is typed wins
                          (("--api-key", "right", "--api-key-file", "/none"), {})):
            done = self.explain(name, *args, **env)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(name, done.stdout)
        self.assertEqual(self.explain(name, "--api-key", "wrong", HEADRACE_API_KEY="right").returncode, 1)
        done = self.explain(name, "--api-key-file", "/none")
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("/none", done.stderr)


class EarlyRefusalTest(ServerTest):
    """What is refused before anybody looks at the request itself."""
    options = ("--allowed-origin", "https://page.example", "--log-json", "--body-timeout", "1",
               "--header-timeout", "1")

    def refusals(self, origin):
        """Each kind, with what a page of `origin` gets: status, method and path, and the reply."""
        own = {"Origin": origin}
        many = {**own, **{f"X-{i}": "a" for i in range(70)}}
        for status, method, path, headers, rest in (
                (413, "POST", CHAT, {**own, "Content-Length": str(9 * MIB)}, b""),
                (413, "POST", "/tokenize", {**own, "Transfer-Encoding": "chunked"}, b"900001\r\n"),
                (408, "POST", "/detokenize", {**own, "Content-Length": "100"}, b"1"),
                (400, "POST", COMPLETIONS, {**own, "Transfer-Encoding": "chunked"}, b"zz\r\n"),
                (400, "GET", "/props", {**own, "Host": None}, b""),
                (501, "PUT", "/slots", {**own, "Transfer-Encoding": "gzip"}, b""),
                (417, "POST", "/completion", {**own, "Content-Length": "2", "Expect": "a-pony"}, b""),
                (431, "GET", "/metrics", many, b""),
                (431, "GET", "/health", {**own, "X-Long": "a" * 17_000}, b""),
        ):
            with self.server.connect() as connection:
                connection.request(method, path, None, headers)
                connection.send(rest)
                reply = connection.reply()
            yield status, method, path, reply

    def test_a_page_can_read_why(self):
        for status, _, path, reply in self.refusals("https://page.example"):
            self.assert_error(reply, status)
            self.assertEqual(reply.headers.get("access-control-allow-origin"), "https://page.example", path)
        for status, _, path, reply in self.refusals("https://evil.example"):
            self.assertIn(reply.status, (status, 403), path)  # where the gate comes first
            self.assertNotIn("access-control-allow-origin", reply.headers, path)

    def test_the_log_says_what_was_asked(self):
        self.server = self.start("tiny", *self.options)  # fewer than are logged in a second
        for status, method, path, reply in self.refusals("https://page.example"):
            name = reply.headers["x-request-id"]
            self.server.wait_until(lambda: name in self.server.text(), "that it is logged")
            line = json.loads(next(line for line in self.server.text().splitlines() if name in line))
            told = {"status": status, "method": method, "path": path, "end": "refused"}
            self.assertEqual({key: line[key] for key in told}, told)

    def test_anthropics_bodies_that_do_not_come(self):
        with self.server.connect() as connection:
            connection.request("POST", "/v1/messages", None, {"Content-Length": "100"})
            connection.send(b"1")
            self.assert_error(connection.reply(), 408, True, type="invalid_request_error")

    def test_the_log_does_without_a_header(self):
        with self.server.connect() as connection:
            reply = connection.reply()
        self.assert_error(reply, 408)
        name = reply.headers["x-request-id"]
        self.server.wait_until(lambda: name in self.server.text(), "that it is logged")


class LogTest(ServerTest):
    options = ("--api-key", "right-key")

    def test_nobody_reads_prompts_or_keys_in_the_log(self):
        headers = {"Authorization": "Bearer right-key", "X-Odd": "odd-header"}
        self.server.post(CHAT, {"messages": [{"role": "user", "content": "secret-prompt"}], "max_tokens": 3}, headers)
        self.server.post(CHAT, {"messages": "secret-prompt"}, headers)
        self.server.post(CHAT, b'{"secret-prompt', headers)
        self.server.get("/\x1b[31m\x07", headers)
        self.server.get("/%1b%5b31m", headers)
        self.server.post(CHAT, {}, {"Authorization": "Bearer wrong-key"})
        text = self.server.text()
        for word in ("secret-prompt", "right-key", "wrong-key", "odd-header", "\x1b", "\x07"):
            self.assertNotIn(word, text)


class KeyFileTest(ServerTest):
    model = ""

    def test_limits_of_a_key(self):
        keys = self.folder / "keys.txt"
        keys.write_text("# ours\nsmall owner=a max-requests=1\nlarge owner=b\n")
        server = self.start("slow", "--api-key-file", keys)
        small, large = {"X-Api-Key": "small"}, {"X-Api-Key": "large"}
        with server.connect() as first:
            first.request("POST", COMPLETIONS, {**LONG, "stream": True}, small)
            self.assertEqual(first.head()[0], 200)
            self.assert_error(server.post(COMPLETIONS, SHORT, small), 429)
            self.assertEqual(server.post(COMPLETIONS, SHORT, large).status, 200)
        server.wait_until(lambda: server.post(COMPLETIONS, SHORT, small).status == 200, "room again")

    def test_prefixes_are_not_shared_among_keys(self):
        keys = self.folder / "two-keys.txt"
        keys.write_text("one\ntwo\n")
        server = self.start("tiny", "--api-key-file", keys)

        def cached(key, **more):
            reply = server.post(COMPLETIONS, {"prompt": "ab" * 100, "max_tokens": 1, **more}, {"X-Api-Key": key})
            return reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]

        self.assertEqual(cached("one"), 0)
        self.assertGreater(cached("one"), 100)
        self.assertEqual(cached("two"), 0)
        self.assertEqual(cached("one", cache_salt="pepper"), 0)


    def two_owners(self, *options):
        """Of whom one request is computed at once."""
        keys = self.folder / "two-owners.txt"
        keys.write_text("one owner=a\ntwo owner=b\n")
        server = self.start("slow", "--api-key-file", keys, "-np", "1", "--keep-alive", "0.2", *options)
        return server, {"X-Api-Key": "one"}, {"X-Api-Key": "two"}

    def begin(self, server, headers, **more):
        """A stream that goes on for long, or its refusal: (connection, status)."""
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.request("POST", COMPLETIONS, {**LONG, "stream": True, **more}, headers)
        return connection, connection.head()[0]

    def num_waiting(self, server, headers):
        return server.metrics(headers)["vllm:num_requests_waiting"]

    def test_who_asks_all_the_time_leaves_room_for_others(self):
        server, greedy, other = self.two_owners("--max-queue", "2")
        inside = [self.begin(server, greedy) for _ in range(3)]  # alone it may have all places
        self.assertEqual([status for _, status in inside], [200] * 3)
        self.assertEqual(self.begin(server, greedy)[1], 429)
        self.assertEqual(self.begin(server, other)[1], 429)
        inside[2][0].close()
        for _ in range(1000):  # until that is seen
            self.assertEqual([self.begin(server, greedy)[1] for _ in range(5)], [429] * 5)
            if self.begin(server, other)[1] == 200:
                return
        self.fail("the other never came in")

    def test_nobody_pushes_in_before_other_keys(self):
        server, first, other = self.two_owners()
        running, status = self.begin(server, first)
        self.assertEqual(status, 200)
        done = []

        def ask(headers, name, **more):
            reply = server.post(COMPLETIONS, {**SHORT, "max_tokens": 20, **more}, headers)
            done.append(name)
            return reply.json()["warnings"]

        pushing = [harness.in_thread(lambda: ask(first, "a", priority=-8)) for _ in range(5)]
        server.wait_until(lambda: self.num_waiting(server, first) == 5, "that they wait")
        others = [harness.in_thread(lambda: ask(other, "b")) for _ in range(5)]
        server.wait_until(lambda: self.num_waiting(server, first) == 10, "that all wait")
        running.close()
        warned, unwarned = [each() for each in pushing], [each() for each in others]
        last_a = len(done) - 1 - done[::-1].index("a")
        self.assertLess(done.index("b"), last_a, done)  # they take turns
        for warnings in warned:
            self.assertEqual([each.split(":")[0] for each in warnings], ["priority"])
        self.assertEqual(unwarned, [[]] * 5)

    def test_one_trust_domain_chooses_its_priorities(self):
        server = self.start("tiny", "--api-key", "only")
        for asked in (self.server_reply(server, {"X-Api-Key": "only"}), self.server_reply(self.start("tiny"), {})):
            self.assertEqual(asked["warnings"], [])

    def server_reply(self, server, headers):
        return server.post(COMPLETIONS, {**SHORT, "priority": -8}, headers).json()


class ConnectionLimitTest(ServerTest):
    options = ("--max-connections", "4", "--header-timeout", "100", "--idle-timeout", "100", "--log-json")
    probes = ("/livez", "/readyz", "/health")

    def test_probes_come_in(self):
        counts = self.server.connect()  # in the order in which they connect they are taken
        self.addCleanup(counts.close)

        def refused():
            counts.request("GET", "/metrics")
            return next(int(line.rsplit(" ", 1)[1]) for line in counts.reply().body.decode().splitlines()
                        if line.startswith("headrace:refused_connections_total"))

        before = refused()
        silent = [self.server.connect() for _ in range(3)]
        for path in self.probes:
            for method in ("GET", "HEAD"):
                reply = self.server.ask(method, path, headers={"Connection": "keep-alive"})
                self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"), path)
        self.assertEqual(refused(), before)
        for method, path, body in (("GET", "/v1/models", None), ("POST", COMPLETIONS, SHORT), ("GET", "/no", None),
                                   ("GET", "/livez", b"{}")):
            with self.server.connect() as connection:
                connection.request(method, path, body)
                reply = connection.reply()
                self.assert_error(reply, 503)
                self.assertEqual(reply.headers["connection"], "close")
                self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
                self.assertTrue(connection.is_closed())
        self.assertEqual(refused(), before + 4)
        self.server.wait_until(lambda: "too_many_connections" in self.server.text(), "that it is logged")
        # More that say nothing than are kept aside: the oldest of them make room.
        more = [self.server.connect() for _ in range(40)]
        self.assertEqual(self.server.get("/livez").status, 200)
        more[0].file.read()  # to its end
        self.assert_error(more[39].reply(), 503)  # some seconds later
        for each in [*silent, *more]:
            each.close()
        self.server.wait_until(lambda: refused() == before + 44, "that each is counted once")
        self.assertEqual(self.server.get("/v1/models").status, 200)
        self.assertEqual(refused(), before + 44)


class SettingsTest(ServerTest):
    """What is found wrong before a model is opened."""
    model = None

    def serve(self, *args):
        return subprocess.run([harness.BINARY, "serve", *map(str, args)], capture_output=True, text=True,
                              timeout=PATIENCE)

    def check_refused(self, told, *args, code=2):
        done = self.serve(*args)
        self.assertEqual(done.returncode, code, done)
        self.assertIn(told, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_printed_settings_are_checked(self):
        wrong = self.folder / "wrong.pem"
        wrong.write_text("no certificate")
        self.check_refused(str(wrong), "--print-config", "--tls-cert", wrong, "--tls-key", wrong)
        self.check_refused("/none", "--print-config", "--tls-cert", "/none", "--tls-key", "/none")
        for models in (("a=x.gguf", "a=y.gguf"), ("x.gguf", "y/x.gguf"), ("x=y.gguf", "x.gguf")):
            self.check_refused("two models are called", "--print-config", "-m", models[0], "-m", models[1])
        done = self.serve("--print-config", "-m", "a=x.gguf", "-m", "y/x.gguf", "-c", "auto")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn('ctx-size = "auto"\n', done.stdout)

    def test_flags_of_others(self):
        done = self.serve("--print-config", "-cb", "--jinja", "--metrics", "--slots", "--enable-prefix-caching",
                          "--dtype", "auto", "--tensor-parallel-size", "1", "--timeout", "600")
        self.assertEqual(done.returncode, 0, done)
        for flag in ("-cb", "--jinja", "--metrics", "--slots", "--dtype", "--tensor-parallel-size", "--timeout"):
            self.assertIn(f"{flag} has no effect", done.stderr)

    def test_lighter_models(self):
        models = ("-m", "a=x.gguf", "-m", "b=y.gguf")
        for told, args in (("expected MODEL=LIGHTER", ("--lighter-model", "a")),
                           ("circle: a -> b -> a", ("--lighter-model", "a=b", "--lighter-model", "b=a")),
                           ("two lighter models", ("--lighter-model", "a=b", "--lighter-model", "a=c")),
                           ("needs --lighter-model", ("--use-lighter-model",))):
            self.check_refused(told, *models, *args)
        tiny = harness.model_file(self.folder, "tiny")
        other = self.folder / "other.gguf"
        harness.tiny_model.write(other, context=CONTEXT, extra=harness.tiny_model.other_vocabulary())
        served = ("-t", "1", "-m", f"a={tiny}", "-m", f"b={tiny}", "-m", f"c={other}", "--port", harness.free_port())
        self.check_refused("'d' is not served; there are a, b, c", *served, "--lighter-model", "a=d", code=1)
        self.check_refused("different tokenizers", *served, "--lighter-model", "a=c", code=1)
        server = harness.Server([harness.BINARY, "serve"], *served[:-2], "--lighter-model", "a=b")
        self.addCleanup(server.kill)
        reply = server.post(COMPLETIONS, {**SHORT, "model": "a", "allow_lighter_model": True})
        self.assertEqual((reply.status, reply.json()["model"]), (200, "a"), reply)
        self.assertEqual(reply.json()["warnings"], [])
        reply = server.post(COMPLETIONS, {**SHORT, "model": "b", "allow_lighter_model": True})
        self.assertIn("allow_lighter_model", reply.json()["warnings"][0])


class LifeTest(ServerTest):
    model = ""

    def test_loading(self):
        path = self.folder / "long-to-load.gguf"
        harness.tiny_model.write(path, context=256, hole_layers=200, feed_forward=4096)
        server = harness.Server([harness.BINARY, "serve", "-m", str(path)], "-t", "1", wait=False)
        self.addCleanup(server.kill)
        replies = []
        server.wait_until(lambda: replies.append(server.get("/health")) or True, "that it listens")
        error = self.assert_error(replies[0], 503)
        self.assertEqual(error["message"], "Loading model")
        self.assertIn("retry-after", replies[0].headers)
        self.assertEqual(server.get("/livez").status, 200)
        reply = server.post(CHAT, USER)
        if "serves" not in server.text():
            self.assert_error(reply, 503)
        server.wait_until(lambda: server.get("/readyz").status == 200, "that it is ready")
        self.assertEqual(server.post(CHAT, USER).status, 200)

    def test_draining(self):
        server = self.start("slow")
        with server.connect() as running, server.connect() as kept, server.connect() as probe:
            running.request("POST", COMPLETIONS, {**LONG, "max_tokens": 200, "stream": True})
            self.assertEqual(running.head()[0], 200)
            server.terminate()
            server.wait_until(lambda: server.get("/readyz").status == 503, "that it is not ready")
            kept.request("POST", COMPLETIONS, SHORT)
            reply = kept.reply()
            self.assert_error(reply, 503)
            self.assertIn("retry-after", reply.headers)
            self.assertEqual(reply.headers["connection"], "close")
            self.assertTrue(kept.is_closed())
            probe.request("GET", "/livez")
            reply = probe.reply()
            self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"))
            self.assertEqual(list(running.events())[-1], "[DONE]")  # the running one ends as it should
        self.assertEqual(server.wait(), 0, server.text())

    def begin_body(self, server, body):
        """Its header was accepted, and half of it is there."""
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.request("POST", COMPLETIONS, None, {"Content-Length": str(len(body)), "Expect": "100-continue"})
        self.assertEqual(connection.head()[0], 100)
        connection.send(body[:len(body) // 2])
        return connection

    def test_a_body_that_comes_while_it_drains(self):
        server = self.start("tiny")
        body = json.dumps(SHORT).encode()
        connection = self.begin_body(server, body)
        self.assertEqual(server.metric("headrace:requests_under_way"), 2)  # and this one
        server.terminate()
        server.wait_until(lambda: server.get("/readyz").status == 503, "that it is not ready")
        connection.send(body[len(body) // 2:])
        reply = connection.reply()
        self.assertEqual((reply.status, reply.headers["connection"]), (200, "close"), reply)
        self.assertEqual(server.wait(), 0, server.text())

    def test_a_body_that_never_comes_while_it_drains(self):
        server = self.start("tiny", "--drain-time", "0.5")
        connection = self.begin_body(server, json.dumps(SHORT).encode())
        server.terminate()
        reply = connection.reply()
        self.assert_error(reply, 503)
        self.assertEqual(reply.headers["connection"], "close")
        self.assertIn("retry-after", reply.headers)
        self.assertEqual(server.wait(20), 0, server.text())

    def test_an_idle_server_ends_at_once(self):
        server = self.start("tiny")
        with server.connect() as idle:
            idle.request("GET", "/livez")
            idle.reply()
            server.terminate()
            self.assertEqual(server.wait(20), 0)

    def test_drain_time_is_a_bound(self):
        server = self.start("slow", "--drain-time", "1")
        with server.connect() as running:
            running.request("POST", COMPLETIONS, {**LONG, "stream": True})
            self.assertEqual(running.head()[0], 200)
            server.terminate()
            self.assertEqual(server.wait(20), 0, server.text())
            events = list(running.events())
            self.assertNotIn("[DONE]", events)
            self.assertEqual(json.loads(events[-1])["error"]["code"], "resource_exhausted", events[-1])

    def test_drain_time_of_an_unstreamed_answer(self):
        server = self.start("slow", "--drain-time", "0.5")
        with server.connect() as running:
            running.request("POST", COMPLETIONS, LONG)
            server.wait_until(lambda: server.metric("vllm:num_requests_running") == 1, "that it runs")
            server.terminate()
            self.assert_error(running.reply(), 503)
            self.assertEqual(server.wait(20), 0, server.text())

    def test_a_second_signal(self):
        server = self.start("slow")
        with server.connect() as running:
            running.request("POST", COMPLETIONS, {**LONG, "stream": True})
            self.assertEqual(running.head()[0], 200)
            server.terminate()
            server.wait_until(lambda: server.get("/readyz").status == 503, "that it drains")
            begun = time.monotonic()
            server.terminate()
            server.wait(20)
            print(f"ended {time.monotonic() - begun:.2f} s after the second signal")
            self.assertLess(time.monotonic() - begun, 5)  # 1 s where the machine is not shared

    def test_a_stream_that_ended_keeps_no_server(self):
        server = self.start("tiny")
        self.assertEqual(server.post(COMPLETIONS, {**SHORT, "stream": True}).status, 200)
        begun = time.monotonic()
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        self.assertLess(time.monotonic() - begun, 3)

    def open_files(self, soft, hard):
        """A server that may have so many, and more connections to it, all of which ask."""
        server = self.start("tiny", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
        connections = [server.connect() for _ in range(130)]
        for each in connections:
            each.socket.settimeout(30)  # less than an idle connection may last
            self.addCleanup(each.close)
            each.request("GET", "/livez")
        return server, connections

    def test_the_soft_limit_of_open_files_is_raised(self):
        server, connections = self.open_files(100, 1000)
        for each in connections:
            self.assertEqual(each.reply().status, 200)
        server.terminate()
        self.assertEqual(server.wait(), 0)

    def test_without_open_files_the_others_wait(self):
        server, connections = self.open_files(100, 100)
        self.assertEqual(connections[0].reply().status, 200)
        connections[1].close()
        for number in range(2, 130, 2):  # each that ends makes room for another
            self.assertEqual(connections[number].reply().status, 200)
            connections[number].close()
            connections[number + 1].close()
        self.assertEqual(server.post(COMPLETIONS, SHORT).status, 200)
        server.terminate()
        self.assertEqual(server.wait(), 0)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = subprocess.run([harness.BINARY, "serve", "-m", harness.model_file(self.folder, "tiny"), "--port",
                                   str(taken.getsockname()[1])], capture_output=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"--port", done.stderr)


class SocketTest(ServerTest):
    model = ""

    def test_unix_socket(self):
        path = self.folder / "socket"
        server = self.start("tiny", unix_path=path)
        self.assertEqual(os.stat(path).st_mode & 0o077, 0)
        reply = server.post(CHAT, USER)
        self.assertEqual(reply.status, 200, reply)
        events, is_done = server.stream(COMPLETIONS, SHORT)
        self.assertTrue(events and is_done)
        server.terminate()
        self.assertEqual(server.wait(), 0)
        self.assertFalse(path.exists())

    def test_tls(self):
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
                        certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        server = self.start("tiny", "--tls-cert", certificate, "--tls-key", key, "--header-timeout", "2",
                            "--idle-timeout", "2", "--stall-timeout", "2")
        context = ssl.create_default_context(cafile=certificate)
        with server.connect(context=context) as connection:
            connection.request("POST", CHAT, USER)
            reply = connection.reply()
            self.assertEqual(reply.status, 200)
            self.check_explain(server, reply.json()["id"], certificate, key)
        with server.connect(context=context) as connection:
            connection.request("POST", COMPLETIONS, {**SHORT, "stream": True})
            self.assertEqual(connection.head()[0], 200)
            self.assertEqual(list(connection.events())[-1], "[DONE]")
        with server.connect() as plain:  # no TLS: cut, and the server lives
            plain.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            plain.file.read()
        with server.connect() as silent:
            with server.connect(context=context) as connection:
                connection.request("GET", "/livez")
                self.assertEqual(connection.reply().status, 200)
            silent.send(b"\x16\x03")
        self.check_ends(server, context)
        self.assertEqual(server.wait(), 0, server.text())

    def check_explain(self, server, name, certificate, key):
        """Whom `headrace explain` trusts."""
        def explain(host, *args):
            return subprocess.run([harness.BINARY, "explain", name, "--url", f"https://{host}:{server.port}", *args],
                                  capture_output=True, text=True, timeout=PATIENCE)
        for args, host in ((("--cacert", certificate), "localhost"), (("--insecure",), "localhost"),
                           (("--insecure",), "127.0.0.1")):
            done = explain(host, *args)
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(name, done.stdout)
        for args, host, told in (((), "localhost", "--cacert"), (("--cacert", certificate), "127.0.0.1", "certificate"),
                                 (("--cacert", key), "localhost", str(key)),
                                 (("--cacert", "/none"), "localhost", "/none")):
            done = explain(host, *args)
            self.assertEqual(done.returncode, 1, done)
            self.assertIn(told, done.stderr)

    def check_ends(self, server, context):
        """TLS says the end of what ends as it should, and only of that."""
        @contextlib.contextmanager
        def connection():
            with server.connect() as connection:
                connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost",
                                                        suppress_ragged_eofs=False)
                connection.file = connection.socket.makefile("rb")
                yield connection

        def is_cut_from_below(tls):
            """Whether the connection ends, though its client says nothing of its own end."""
            below = socket.socket(fileno=os.dup(tls.fileno()))
            with below:
                below.settimeout(PATIENCE)
                try:
                    return below.recv(1) == b""
                except ConnectionResetError:
                    return True

        def num_cut():
            with connection() as asks:
                asks.request("GET", "/metrics", headers={"Connection": "close"})
                lines = asks.reply().body.decode().splitlines()
            return next(float(line.rsplit(" ", 1)[1]) for line in lines
                        if line.startswith("headrace:slow_clients_total"))

        with connection() as asked:
            asked.request("GET", "/livez", headers={"Connection": "close"})
            self.assertEqual(asked.reply().status, 200)
            self.assertEqual(asked.file.read(), b"")  # an end without a word would raise
            self.assertTrue(is_cut_from_below(asked.socket))
        with connection() as refused:
            refused.request("POST", CHAT, None, {"Content-Length": str(9 * MIB)})
            refused.send(b" " * MIB)
            self.assert_error(refused.reply(), 413)
            self.assertEqual(refused.file.read(), b"")
        with connection() as late:
            late.send("GET /livez HTTP/1.1\r\nHost: local")
            self.assert_error(late.reply(), 408)
            self.assertEqual(late.file.read(), b"")
        with connection() as idle:
            idle.request("GET", "/livez")
            self.assertEqual(idle.reply().status, 200)
            self.assertEqual(idle.file.read(), b"")
        with connection() as stuck:
            stuck.request("POST", COMPLETIONS, {**LONG, "stream": True, "logprobs": 20, "n": 4, "max_tokens": 3500},
                          version="1.0")
            server.wait_until(lambda: num_cut() == 1, "that it is cut")
            with self.assertRaises((ssl.SSLEOFError, ConnectionResetError)):
                stuck.file.read()  # under HTTP/1.0 nothing else tells it from a whole answer
        with connection() as idle:
            idle.request("GET", "/livez")
            self.assertEqual(idle.reply().status, 200)
            server.terminate()
            self.assertEqual(idle.file.read(), b"")


if __name__ == "__main__":
    harness.main()
