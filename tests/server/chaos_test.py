#!/usr/bin/env python3
"""Many clients at once, of which three in ten leave, stall, trickle or send garbage, on the checksum
model: the others get every token that they must get, once and in order, and at the end nothing is held
and nothing has grown. `--seconds N` (60), `--seed N`. HEADRACE_CHECKSUM_SERVER names the server."""
import argparse
import collections
import json
import random
import socket
import threading
import time
import unittest

import harness
from checksum import ChecksumServer, text_of
from harness import COMPLETIONS

NUM_CLIENTS = 24
BAD_SHARE = 0.3
MAX_GROWTH = 16 << 20  # bytes, after the warm-up
VOCAB = 1000
settings = argparse.Namespace(seconds=60.0, seed=1)
GARBAGE = (b"\0" * 200, b"GET / HTTP/1.1\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
           b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"\x16\x03\x01\xff\xff", b"\r\n" * 50,
           b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"prompt\"",
           b"GET /" + b"a" * 20_000)


class Client(threading.Thread):
    """Asks one request after another until the end; most as they should be."""

    def __init__(self, server, number, end):
        super().__init__(daemon=True)
        self.server, self.end = server, end
        self.chance = random.Random(settings.seed * 1000 + number)
        self.counts = collections.Counter()
        self.faults = []

    def run(self):
        while time.monotonic() < self.end:
            try:
                if self.chance.random() < BAD_SHARE:
                    kind = self.chance.choice((self.leave, self.stall, self.trickle, self.garbage))
                    self.counts[kind.__name__] += 1
                    kind()
                else:
                    self.ask_and_check()
            except Exception as fault:  # a test that fails, with its reason
                self.faults.append(f"{type(fault).__name__}: {fault}")

    def body(self):
        # Beginnings are shared by some, so that blocks are too.
        prefix = [(7 * i) % VOCAB for i in range(self.chance.choice((0, 0, 40, 200)))]
        own = [self.chance.randrange(VOCAB) for _ in range(self.chance.randint(1, 150))]
        return {"prompt": text_of(prefix + own), "max_tokens": self.chance.randint(1, 300),
                "seed": self.chance.randrange(3), "n": self.chance.choice((1, 1, 1, 3)),
                "stream": self.chance.random() < 0.7}

    def ask_and_check(self):
        body = self.body()
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, body)
            if body["stream"]:
                status, _ = connection.head()
                if status != 200:
                    raise AssertionError(f"status {status}")
                texts = self.streamed(connection)
            else:
                reply = connection.reply()
                if reply.status != 200:
                    raise AssertionError(f"{reply}")
                texts = {each["index"]: each["text"] for each in reply.json()["choices"]}
        for choice in range(body["n"]):
            wanted = self.server.expected(body["prompt"], body["max_tokens"], body["seed"], choice)
            if texts.get(choice) != wanted:
                raise AssertionError(f"choice {choice} of {body}: {texts.get(choice)} instead of {wanted}")
            self.counts["tokens"] += len(wanted)
        self.counts["checked"] += 1

    def streamed(self, connection):
        texts, last = {}, ""
        for event in connection.events():
            last = event
            if event == "[DONE]":
                continue
            for choice in json.loads(event)["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
        if last != "[DONE]":
            raise AssertionError(f"the stream ended with {last}")
        return texts

    def pause(self, most):
        time.sleep(self.chance.random() * most)

    def leave(self):
        with self.server.connect() as connection:
            connection.request("POST", COMPLETIONS, {**self.body(), "max_tokens": 1000})
            self.pause(0.3)
            if self.chance.random() < 0.3:  # with a reset instead of an end
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def stall(self):
        body = {**self.body(), "max_tokens": 1500, "n": 3, "stream": True, "logprobs": 5}
        with self.server.connect(receive_buffer=4096) as connection:
            connection.request("POST", COMPLETIONS, body)
            self.pause(4)  # of which the server allows 2
            connection.socket.settimeout(1)
            try:
                connection.socket.recv(1000)
            except OSError:
                pass

    def trickle(self):
        with self.server.connect() as connection:
            data = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"prompt\":\"aaaaaa"
            try:
                for byte in data[:self.chance.randint(1, len(data))]:
                    connection.send(bytes([byte]))
                    time.sleep(0.02)
                if self.chance.random() < 0.5:
                    connection.file.read()  # it is told that its time has passed, or cut
            except OSError:
                pass

    def garbage(self):
        with self.server.connect() as connection:
            try:
                connection.send(self.chance.choice(GARBAGE) if self.chance.random() < 0.5
                                else self.chance.randbytes(self.chance.randint(1, 3000)))
                connection.socket.settimeout(1)
                connection.file.read()
            except OSError:
                pass


class ChaosTest(unittest.TestCase):
    def test_chaos(self):
        server = ChecksumServer("--step-delay-us", 1000, "--np", 16, "--kv-tokens", 12_000, "--stall-ms", 2000,
                                "--header-ms", 2000, "--body-ms", 2000)
        self.addCleanup(server.kill)
        begun = time.monotonic()
        clients = [Client(server, number, begun + settings.seconds) for number in range(NUM_CLIENTS)]
        for each in clients:
            each.start()
        time.sleep(settings.seconds / 3)  # pools and caches have their size then
        warm = server.resident_bytes()
        peak = warm
        while any(each.is_alive() for each in clients) and time.monotonic() < begun + settings.seconds + 120:
            time.sleep(1)
            peak = max(peak, server.resident_bytes())
        self.assertFalse([each.name for each in clients if each.is_alive()], "clients that never ended")
        counts = sum((each.counts for each in clients), collections.Counter())
        metrics = server.metrics()
        print(f"{dict(counts)}; {warm >> 20} MiB after the warm-up, {peak >> 20} MiB at most")
        print({name: metrics[name] for name in ("headrace:clients_gone_total", "headrace:slow_clients_total",
                                                "vllm:num_preemptions_total", "headrace:reader_pauses_total")
               if name in metrics})
        self.assertIsNone(server.process.poll(), server.text())
        self.assertEqual([fault for each in clients for fault in each.faults][:5], [])
        self.assertGreater(counts["checked"], settings.seconds)
        self.assertEqual(server.held_blocks(), 0)
        server.wait_until(lambda: server.metric("headrace:requests_under_way") == 1, "no request but this is open")
        self.assertEqual(metrics["headrace:broken_invariants_total"], 0)
        self.assertLessEqual(peak - warm, MAX_GROWTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.parse_args(namespace=settings)
    if not harness.CHECKSUM_SERVER:
        raise SystemExit("set HEADRACE_CHECKSUM_SERVER to the server of the checksum model")
    unittest.main(argv=["chaos_test"], verbosity=2)
