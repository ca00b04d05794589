#!/usr/bin/env python3
"""How a server begins and ends: settings, loading, draining, signals. Against the program on loopback;
HEADRACE_BINARY names it."""
import json
import resource
import socket
import subprocess
import time

import harness
from harness import CHAT, COMPLETIONS, CONTEXT, LONG, PATIENCE, SHORT, USER, ServerTest


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


if __name__ == "__main__":
    harness.main()
