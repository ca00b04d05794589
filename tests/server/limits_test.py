#!/usr/bin/env python3
"""What one client, or many that do nothing, can take of a server: memory, places, room for bodies.
HEADRACE_BINARY names the program, HEADRACE_CHECKSUM_SERVER the one with the checksum model."""
import contextlib
import json
import unittest

import harness
from checksum import ChecksumServer, text_of
from harness import COMPLETIONS, MIB, SHORT, ServerTest, in_thread

TOOLS = ("/tokenize", "/detokenize", "/apply-template", "/v1/messages/count_tokens")
HOLDING = 996


def memory_of(server, name):
    """VmRSS, now, or VmHWM, at most so far; in bytes."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name + ":"))


def begin_body(connection, length, bytes_of_it):
    """A request whose body has not come in whole."""
    connection.request("POST", COMPLETIONS, None, {"Content-Length": str(length)})
    connection.send(bytes_of_it)


class MemoryTest(ServerTest):
    def test_a_text_of_eight_mebibytes_as_tokens(self):
        self.assertEqual(self.server.post("/tokenize", {"content": "1"}).status, 200)
        before = memory_of(self.server, "VmRSS")
        body = {"content": "1234567" * (8 * MIB // 7 - 20), "with_pieces": True, "return_token_strs": True}
        reply = self.server.post("/tokenize", body)
        self.assertEqual(reply.status, 200, reply)
        self.assertGreater(len(reply.body), 100 * MIB)
        head, end = reply.body[:200], reply.body[-60:]
        del reply
        self.assertTrue(head.startswith(b'{"tokens":[{"id":'), head)
        self.assertTrue(end.endswith(b'],"warnings":[]}'), end)
        peak = memory_of(self.server, "VmHWM")
        self.server.wait_until(lambda: memory_of(self.server, "VmRSS") < before + 32 * MIB,
                               "that the memory is given back")
        after = memory_of(self.server, "VmRSS")
        print(f"MiB resident: {before / MIB:.0f} before, {peak / MIB:.0f} at most, {after / MIB:.0f} after")
        self.assertLess(peak - before, 600 * MIB)

    def test_many_small_values_are_given_back(self):
        self.assertEqual(self.server.post("/tokenize", {"content": "1"}).status, 200)
        before = memory_of(self.server, "VmRSS")
        values = b'{"content":"a","x":[' + b'{"a":1},' * 600_000 + b"1]}"
        self.assertEqual(self.server.post("/tokenize", values).status, 200)
        self.server.wait_until(lambda: memory_of(self.server, "VmRSS") < before + 32 * MIB,
                               "that the memory is given back")


class BodiesTest(ServerTest):
    def test_bodies_that_do_not_come_take_no_room(self):
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(self.server.connect()) for _ in range(40)]
            for each in idle:
                begin_body(each, 8 * MIB, b"{")
            # Each one was read as far as it came before the next one is answered.
            self.assertEqual(self.server.post(COMPLETIONS, SHORT).status, 200)
            reply = self.server.post(COMPLETIONS, {**SHORT, "user": " " * MIB})
            self.assertEqual(reply.status, 400, reply)  # read, and found too long a name

    def test_a_body_of_pieces(self):
        body = json.dumps({**SHORT, "x": "y" * 300_000}).encode()
        with self.server.connect() as connection:
            begin_body(connection, len(body), body[:1])
            for at in range(1, len(body), 50_000):
                connection.send(body[at:at + 50_000])
            self.assertEqual(connection.reply().status, 200)

    def test_compressed(self):
        for headers in ({"Content-Encoding": "gzip"}, {"Content-Encoding": "identity, br"},
                        {"Content-Encoding": "zstd", "Transfer-Encoding": "chunked", "Content-Length": None}):
            with self.server.connect() as connection:
                connection.request("POST", COMPLETIONS, SHORT, headers)
                reply = connection.reply()
            error = self.assert_error(reply, 415)
            self.assertIn("Content-Encoding", error["message"])
            self.assertEqual(reply.headers["accept-encoding"], "identity")
        self.assertEqual(self.server.post(COMPLETIONS, SHORT, {"Content-Encoding": "identity"}).status, 200)

    def test_empty_lines_before_a_request(self):
        request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for lines in (1, 2, 4):
            with self.server.connect() as connection:
                connection.send(b"\r\n" * lines + request)
                self.assertEqual(connection.reply().status, 200)
                for byte in b"\r\n" * lines + request:  # the same in pieces, behind another
                    connection.send(bytes([byte]))
                self.assertEqual(connection.reply().status, 200)
        for start in (b"\r\n" * 5, b"\n", b"\r\r\n", b" \r\n", b"\r"):
            with self.subTest(start), self.server.connect() as connection:
                connection.send(start + request)
                self.assert_error(connection.reply(), 400)

    def test_an_empty_line_behind_a_body(self):
        with self.server.connect() as connection:
            body = json.dumps(SHORT).encode()
            connection.request("POST", COMPLETIONS, body + b"\r\n", {"Content-Length": str(len(body))})
            self.assertEqual(connection.reply().status, 200)
            connection.request("GET", "/livez", headers={"Connection": "close"})
            self.assertEqual(connection.reply().status, 200)
            self.assertTrue(connection.is_closed())


class ChecksumTest(unittest.TestCase):
    def serve(self, *options):
        server = ChecksumServer("--holding-token", HOLDING, *options)
        self.addCleanup(server.kill)
        self.addCleanup(lambda: self.assertIsNone(server.process.poll(), server.text()))
        return server

    def refused(self, reply, status):
        self.assertEqual(reply.status, status, reply)
        self.assertTrue(1 <= int(reply.headers["retry-after"]) <= 120, reply)

    def hold(self, server, number, headers=None):
        """So many /tokenize requests that do not end before "release"."""
        before = server.metrics(headers)["headrace:requests_under_way"]
        held = [in_thread(server.post, "/tokenize", {"content": text_of([HOLDING, i])}, headers)
                for i in range(number)]
        server.wait_until(lambda: server.metrics(headers)["headrace:requests_under_way"] == before + number,
                          "that all are there")
        return held

    def released(self, server, held):
        server.command("release")
        for i, each in enumerate(held):
            reply = each()
            self.assertEqual(reply.status, 200, reply)
            self.assertEqual(reply.json()["tokens"], [HOLDING, i])


class RoomTest(ChecksumTest):
    def test_bodies_share_what_has_come(self):
        server = self.serve("--body-bytes-of-all", MIB)
        body = json.dumps({"prompt": text_of([5]), "max_tokens": 1, "x": "y" * 900_000}).encode()
        held = self.hold(server, 2)  # all the threads for bodies
        waits = in_thread(server.post, "/tokenize", {"content": "a", "x": "y" * 800_000})
        server.wait_until(lambda: server.metric("headrace:body_bytes") > 800_000, "that it is there in whole")
        with server.connect() as patient, server.connect() as hasty:
            begin_body(patient, len(body), body[:1])
            begin_body(hasty, len(body), body[:500_000])
            self.refused(hasty.reply(), 503)
            self.released(server, held)
            self.assertEqual(waits().status, 200)
            patient.send(body[1:])
            self.assertEqual(patient.reply().status, 200)

class ToolsTest(ChecksumTest):
    def test_so_many_at_once(self):
        server = self.serve()
        held = self.hold(server, 64)
        for path in TOOLS:
            self.refused(server.post(path, {"content": "a"}), 429)
        self.assertEqual(server.get("/v1/models").status, 200)
        self.assertGreaterEqual(server.metric("headrace:requests_refused_total", status="429"), 4)
        self.released(server, held)
        server.wait_until(lambda: server.post("/tokenize", {"content": "a"}).status == 200, "room again")

    def test_so_many_bytes_at_once(self):
        server = self.serve("--waiting-bytes", 1000)
        held = self.hold(server, 2)
        self.refused(server.post("/tokenize", {"content": "a" * 1000}), 429)
        self.released(server, held)

    def test_so_many_of_a_key(self):
        server = self.serve("--requests-of-key", 2)
        first, second = {"X-Api-Key": "a"}, {"X-Api-Key": "b"}
        held = self.hold(server, 2, first)
        self.refused(server.post("/tokenize", {"content": "a"}, first), 429)
        other = in_thread(server.post, "/detokenize", {"tokens": [1]}, second)  # waits, as those do
        server.wait_until(lambda: server.metrics(first)["headrace:requests_under_way"] == 4, "that it is there")
        self.released(server, held)
        self.assertEqual(other().status, 200)

    def test_a_key_leaves_half_to_others(self):
        server = self.serve("--requests-of-key", 100, "--text-tools", 8)
        first, second = {"X-Api-Key": "a"}, {"X-Api-Key": "b"}
        held = self.hold(server, 4, first)
        self.refused(server.post("/tokenize", {"content": "a"}, first), 429)
        others = self.hold(server, 4, second)
        self.released(server, held)
        self.released(server, others)

    def test_nobody_works_for_a_client_that_has_gone(self):
        server = self.serve()
        held = self.hold(server, 2)  # all the threads for such
        with server.connect() as leaves:
            leaves.request("POST", "/tokenize", {"content": "a"})
            server.wait_until(lambda: server.metric("headrace:requests_under_way") == 4, "that it is there")
        server.wait_until(lambda: server.metric("headrace:requests_under_way") == 3, "that it has gone")
        self.released(server, held)
        self.assertEqual(server.post("/tokenize", {"content": "b"}).status, 200)
        self.assertEqual(server.command("texts"), "3")


if __name__ == "__main__":
    harness.main()
