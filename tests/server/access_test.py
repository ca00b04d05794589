#!/usr/bin/env python3
"""Who may ask a server what: keys, hosts, origins and what each of them leaves to others; what the log
says of it. Against the program on loopback; HEADRACE_BINARY names it."""
import json
import os
import subprocess

import harness
from harness import CHAT, COMPLETIONS, LONG, MIB, PATIENCE, SHORT, USER, ServerTest


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


if __name__ == "__main__":
    harness.main()
