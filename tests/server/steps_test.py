#!/usr/bin/env python3
"""Steps of the engine that hang, fail or give no numbers, seen from outside: on the checksum model,
whose every token can be checked. HEADRACE_CHECKSUM_SERVER names its server."""
import contextlib
import itertools
import json
import resource
import time
import unittest

import harness
from checksum import ChecksumServer, text_of
from harness import COMPLETIONS, in_thread

HOLDING, THROWING, SPOILED, HANGING = 996, 997, 998, 999


class StepsTest(unittest.TestCase):
    def serve(self, *options):
        server = ChecksumServer("--throwing-token", THROWING, "--spoiled-token", SPOILED, "--hanging-token", HANGING,
                                *options)
        self.addCleanup(server.kill)
        self.addCleanup(lambda: self.assertIsNone(server.process.poll(), server.text()))
        return server

    def check(self, server, reply, prompt, count, seed=1):
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(reply.json()["choices"][0]["text"], server.expected(prompt, count, seed))

    def body(self, prompt, count, **more):
        return {"prompt": prompt, "max_tokens": count, "seed": 1, **more}

    def test_a_stuck_step(self):
        server = self.serve("--stuck-after-ms", 1000)
        prompt = text_of([5, HANGING, 7])
        stuck = in_thread(server.post, COMPLETIONS, self.body(prompt, 9))
        server.wait_until(lambda: server.get("/readyz").status == 503, "that it is not ready")
        self.assertIn("stuck", server.get("/readyz").error()["message"])
        for path in ("/livez", "/metrics", "/v1/models", "/dashboard/data"):
            begun = time.monotonic()
            self.assertEqual(server.get(path).status, 200, path)
            self.assertLess(time.monotonic() - begun, 20)
        waiting = in_thread(server.post, COMPLETIONS, self.body(text_of([1, 2]), 5))
        server.command("release")
        self.check(server, stuck(), prompt, 9)
        self.check(server, waiting(), text_of([1, 2]), 5)
        self.assertEqual(server.get("/readyz").status, 200)

    def fill(self, server):
        """A step that hangs and a request that waits: the engine of the first model is full."""
        prompt = text_of([5, HANGING, 7])
        stuck = in_thread(server.post, COMPLETIONS, self.body(prompt, 3, model="checksum"))
        server.wait_until(lambda: server.get("/readyz").status == 503, "that a step hangs")
        answered = []
        two = [in_thread(lambda: answered.append(server.post(COMPLETIONS, self.body(text_of([1, 2]), 5,
                                                                                    model="checksum"))))
               for _ in range(2)]
        server.wait_until(lambda: answered, "that one of them is refused")
        self.assertEqual(answered[0].status, 429, answered)

        def end():
            server.command("release")
            self.check(server, stuck(), prompt, 3)
            for each in two:
                each()
            self.check(server, answered[1], text_of([1, 2]), 5)

        return end

    def test_a_lighter_model_answers_where_that_is_allowed(self):
        server = self.serve("--stuck-after-ms", 500, "--np", 1, "--max-waiting", 1, "--lighter", 1)
        steps = {"model_name": "checksum", "step": "lighter_model"}
        end = self.fill(server)
        ask = self.body(text_of([1, 2, 3]), 5, model="checksum")
        refused = server.post(COMPLETIONS, ask)
        self.assertEqual(refused.status, 429, refused)
        self.assertEqual(server.metric("headrace:fallback_total", **steps), 0)
        allowed = {**ask, "allow_lighter_model": True}
        reply = server.post(COMPLETIONS, allowed)
        self.check(server, reply, text_of([1, 2, 3]), 5)
        self.assertEqual(reply.json()["model"], "lighter")
        self.assertTrue(any('"lighter"' in each and '"checksum"' in each for each in reply.json()["warnings"]), reply)
        events, is_done = server.stream(COMPLETIONS, allowed)
        self.assertTrue(is_done)
        self.assertEqual({each["model"] for each in events}, {"lighter"})
        self.assertEqual(server.metric("headrace:fallback_total", **steps), 2)
        self.assertEqual(server.metric("headrace:fallback_total", model_name="lighter", step="lighter_model"), 0)
        rungs = server.get("/dashboard/data").json()["models"][0]["rungs"]
        self.assertEqual(rungs["lighter_model"], 2)
        # What is wrong is wrong with any model.
        self.assertEqual(server.post(COMPLETIONS, {**allowed, "max_tokens": 100_000}).status, 400)
        end()
        server.wait_until_idle()
        reply = server.post(COMPLETIONS, allowed)  # there is room
        self.check(server, reply, text_of([1, 2, 3]), 5)
        self.assertEqual(reply.json()["model"], "checksum")
        self.assertEqual(reply.json()["warnings"], [])

    def test_a_lighter_model_for_all_requests(self):
        everybody = self.serve("--stuck-after-ms", 500, "--np", 1, "--max-waiting", 1, "--lighter", 1,
                               "--lighter-for-all", 1)
        prompt = text_of([5, HANGING, 7])
        stuck = in_thread(everybody.post, COMPLETIONS, self.body(prompt, 3, model="checksum"))
        everybody.wait_until(lambda: everybody.get("/readyz").status == 503, "that a step hangs")
        asked = self.body(text_of([4, 5]), 4, model="checksum")
        replies = [in_thread(everybody.post, COMPLETIONS, asked) for _ in range(2)]
        steps = {"model_name": "checksum", "step": "lighter_model"}
        everybody.wait_until(lambda: everybody.metric("headrace:fallback_total", **steps) == 1, "that one was passed on")
        everybody.command("release")
        self.check(everybody, stuck(), prompt, 3)
        got = [each() for each in replies]
        self.assertEqual(sorted(each.json()["model"] for each in got), ["checksum", "lighter"])
        for each in got:
            self.check(everybody, each, text_of([4, 5]), 4)

    def test_a_client_that_leaves_a_stuck_step(self):
        server = self.serve("--stuck-after-ms", 1000)
        with server.connect() as connection:
            connection.request("POST", COMPLETIONS, self.body(text_of([5, HANGING]), 9))
            server.wait_until(lambda: server.get("/readyz").status == 503, "that it is not ready")
        server.command("release")
        server.wait_until(lambda: server.get("/readyz").status == 200, "that it is ready again")
        server.wait_until(lambda: server.metric("headrace:clients_gone_total") == 1, "that the client is counted")
        self.assertEqual(server.held_blocks(), 0)

    def test_a_stream_without_tokens_shows_that_it_lives(self):
        server = self.serve("--keep-alive-ms", 500)
        prompt = text_of([5, HANGING, 7])
        with server.connect() as connection:
            connection.request("POST", COMPLETIONS, self.body(prompt, 9, stream=True))
            self.assertEqual(connection.head()[0], 200)  # some seconds later, though no step ended
            for _ in range(2):
                self.assertEqual(connection.chunk(), b": keep-alive\n\n")
            server.command("release")
            events = list(connection.events())
        self.assertEqual(events[-1], "[DONE]")
        text = "".join(choice["text"] for each in events[:-1] for choice in json.loads(each)["choices"])
        self.assertEqual(text, server.expected(prompt, 9))

    def test_a_thousand_idle_streams(self):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit[1] < 4096:
            self.skipTest(f"a process may have {limit[1]} files here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, limit[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limit)
        server = self.serve("--np", 16, "--stuck-after-ms", 600_000)
        before = server.resident_bytes()
        prompt = text_of([5, HANGING, 7])
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(server.connect()) for _ in range(1000)]
            for each in connections:
                each.request("POST", COMPLETIONS, self.body(prompt, 5, stream=True))
            self.assertEqual({each.head()[0] for each in connections}, {200})
            growth = server.resident_bytes() - before
            for _ in range(1000):  # each step that begins the prompt hangs
                server.command("release")
                if server.metric("vllm:request_success_total", finished_reason="length") == 1000:
                    break
                time.sleep(0.05)
            wanted = server.expected(prompt, 5)
            for each in connections:
                events = list(each.events())
                self.assertEqual(events[-1], "[DONE]")
                self.assertEqual("".join(choice["text"] for event in events[:-1]
                                         for choice in json.loads(event)["choices"]), wanted)
        print(f"1000 idle streams: {growth / 2**20:.1f} MiB")
        self.assertLess(growth, 64 << 20)

    def test_long_steps_are_not_stuck(self):
        server = self.serve("--stuck-after-ms", 5000, "--step-delay-us", 400_000)
        answer = in_thread(server.post, COMPLETIONS, self.body(text_of([1]), 8))
        for _ in range(6):
            self.assertEqual(server.get("/readyz").status, 200)
            time.sleep(0.3)
        self.check(server, answer(), text_of([1]), 8)

    def test_a_step_that_fails_once_costs_nobody_a_token(self):
        server = self.serve("--step-delay-us", 20_000)
        prompts = [text_of([i, i + 1]) for i in range(6)]
        answers = [in_thread(server.post, COMPLETIONS, self.body(each, 60)) for each in prompts]
        server.wait_until(lambda: server.num_running() == 6, "that all run")
        server.command("fail")
        for prompt, answer in zip(prompts, answers):
            self.check(server, answer(), prompt, 60)
        self.assertGreaterEqual(server.metric("headrace:failed_steps_total"), 1)
        self.assertEqual(server.metric("headrace:requests_failed_total"), 0)

    def test_only_the_request_that_fails_again_fails(self):
        server = self.serve("--step-delay-us", 10_000)
        prompts = [text_of([i, i + 1]) for i in range(4)]
        answers = [in_thread(server.post, COMPLETIONS, self.body(each, 80)) for each in prompts]
        server.wait_until(lambda: server.num_running() == 4, "that all run")
        for streams in (False, True):
            reply = server.post(COMPLETIONS, self.body(text_of([3, THROWING]), 9, stream=streams))
            self.assertEqual(reply.status, 500, reply)
            self.assertEqual(set(reply.error()), {"message", "type", "code", "param"})
            self.assertEqual(reply.error()["type"], "server_error")
            for inner in ("0x", ".cc", "std::", "/src"):
                self.assertNotIn(inner, reply.error()["message"])
        for prompt, answer in zip(prompts, answers):
            self.check(server, answer(), prompt, 80)
        self.assertEqual(server.metric("headrace:requests_failed_total"), 2)
        self.assertEqual(server.get("/readyz").status, 200)
        self.assertEqual(server.held_blocks(), 0)

    def test_logits_that_are_no_numbers(self):
        server = self.serve("--step-delay-us", 10_000)
        other = in_thread(server.post, COMPLETIONS, self.body(text_of([1, 2]), 60))
        reply = server.post(COMPLETIONS, self.body(text_of([SPOILED, 4]), 9))
        self.assertEqual(reply.status, 500, reply)
        self.assertRegex(reply.error()["message"].lower(), "nan|infinit|number|logit")
        self.check(server, other(), text_of([1, 2]), 60)
        self.assertEqual(server.metric("headrace:bad_logits_total"), 1)

    def test_a_fault_in_the_middle_of_a_stream(self):
        server = self.serve("--step-delay-us", 100_000)
        with server.connect() as connection:
            connection.request("POST", COMPLETIONS, self.body(text_of([1, 2]), 600, stream=True, timeout_ms=3000))
            status, _ = connection.head()
            if status == 504:
                self.skipTest("this machine is too slow: no token in 3 s")
            events = list(connection.events())
        self.assertNotIn("[DONE]", events)
        self.assertIn("error", json.loads(events[-1]))
        said = "".join(choice["text"] for each in events[:-1] for choice in json.loads(each)["choices"])
        self.assertTrue(said and server.expected(text_of([1, 2]), 600).startswith(said))

    def test_choices_and_streams_are_whole(self):
        server = self.serve()
        prompt = text_of(range(100))
        events, is_done = server.stream(COMPLETIONS, self.body(prompt, 50, n=4))
        self.assertTrue(is_done)
        texts = {}
        for each in events:
            for choice in each["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
        self.assertEqual(texts, {i: server.expected(prompt, 50, choice=i) for i in range(4)})

    def test_texts_that_take_long_delay_nobody_else(self):
        """More of them than there are threads for such, each held in its tokenizer."""
        server = self.serve("--holding-token", HOLDING, "--max-queue", 8, "--np", 4, "--step-delay-us", 10_000)
        with server.connect() as stream:
            stream.request("POST", COMPLETIONS, self.body(text_of([5]), 1900, stream=True))
            self.assertEqual(stream.head()[0], 200)
            held = [in_thread(server.post, COMPLETIONS, self.body(text_of([HOLDING, i]), 3)) for i in range(11)]
            tools = [in_thread(server.post, path, {"content": text_of([HOLDING])}) for path in ("/tokenize",) * 3]
            server.wait_until(lambda: server.metric("headrace:requests_under_way") == 16, "that all are there, and this")
            self.assertEqual(server.post(COMPLETIONS, self.body("x", 1)).status, 429)
            for path in ("/livez", "/metrics", "/v1/models", "/props", "/dashboard/data"):
                self.assertEqual(server.get(path).status, 200, path)
            wanted, text = server.expected(text_of([5]), 1900), ""
            for event in itertools.islice(stream.events(), 60):
                text += json.loads(event)["choices"][0]["text"]
            self.assertGreater(len(text), 30)
            self.assertEqual(text, wanted[:len(text)])
        server.command("release")
        for i, each in enumerate(held):
            self.check(server, each(), text_of([HOLDING, i]), 3)
        for each in tools:
            self.assertEqual(each().json()["tokens"], [HOLDING])

    def test_blocks_that_run_out(self):
        # Room for a few of the sixteen at once: some begin again, and lose no token.
        # The steps take a while, so that all are there before the first has ended.
        server = self.serve("--kv-tokens", 2048, "--context", 1024, "--step-delay-us", 3000)
        prompts = [text_of([i] * 200) for i in range(16)]
        answers = [in_thread(server.post, COMPLETIONS, self.body(each, 300)) for each in prompts]
        for prompt, answer in zip(prompts, answers):
            self.check(server, answer(), prompt, 300)
        self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
        self.assertEqual(server.held_blocks(), 0)


class OverloadTest(unittest.TestCase):
    """Ten times as many clients as there are places."""
    body = {"prompt": text_of([1, 2, 3]), "max_tokens": 10, "seed": 1}

    def load(self, server, num_clients, seconds):
        """Answers a second, and the times of refusals."""
        wanted = server.expected(self.body["prompt"], 10)
        end = time.monotonic() + seconds

        def client():
            answered, refused = 0, []
            with server.connect() as connection:
                while time.monotonic() < end:
                    begun = time.monotonic()
                    connection.request("POST", COMPLETIONS, self.body)
                    reply = connection.reply()
                    self.assertEqual(reply.headers.get("connection", "keep-alive").lower(), "keep-alive")
                    if reply.status == 429:
                        refused.append(time.monotonic() - begun)
                        self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
                        time.sleep(0.2)
                        continue
                    self.assertEqual(reply.json()["choices"][0]["text"], wanted)
                    answered += 1
            return answered, refused

        outcomes = [client() for client in [in_thread(client) for _ in range(num_clients)]]
        return sum(each for each, _ in outcomes) / seconds, [time for _, each in outcomes for time in each]

    def test_goodput(self):
        server = ChecksumServer("--np", 8, "--max-queue", 8, "--step-delay-us", 20_000)
        self.addCleanup(server.kill)
        alone, _ = self.load(server, 16, 4)
        overloaded, refused = self.load(server, 160, 6)
        refused.sort()
        print(f"{alone:.0f} answers/s, {overloaded:.0f} in tenfold overload ({100 * overloaded / alone:.0f} %); "
              f"{len(refused)} refused, in {1e3 * refused[len(refused) // 2]:.1f} ms, "
              f"99 % in {1e3 * refused[len(refused) * 99 // 100]:.1f} ms as this client sees it")
        self.assertGreater(len(refused), 100)
        self.assertGreater(overloaded, 0.8 * alone)  # 0.95 on a machine that does nothing else
        self.assertLess(refused[len(refused) // 2], 0.1)  # 10 ms on such a machine
        self.assertEqual(server.held_blocks(), 0)


if __name__ == "__main__":
    if not harness.CHECKSUM_SERVER:
        raise SystemExit("set HEADRACE_CHECKSUM_SERVER to the server of the checksum model")
    unittest.main(verbosity=2)
