#!/usr/bin/env python3
"""What a server takes of HTTP: sizes, framing, addresses, times and connections, each line of the
contract, against the program on loopback. HEADRACE_BINARY names it."""
import contextlib
import json
import os
import socket
import ssl
import subprocess
import time

import harness
from harness import CHAT, COMPLETIONS, LONG, MIB, PATIENCE, SHORT, USER, ServerTest


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
