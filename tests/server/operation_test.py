#!/usr/bin/env python3
"""What a server tells those who run it: each metric of the contract, and where the time of a request
went. HEADRACE_BINARY names the program, HEADRACE_CHECKSUM_SERVER the one with the checksum model."""
import re

import harness
from checksum import ChecksumServer, text_of
from harness import COMPLETIONS, SHORT, ServerTest

LAST = 256  # requests that are kept
THROWING, HANGING = 997, 999

GAUGES = {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
          "headrace:kv_token_slot_utilisation", "headrace:kv_byte_utilisation", "headrace:fraction_of_bandwidth"}
COUNTERS = {"vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:prefix_cache_queries_total",
            "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total", "vllm:request_success_total",
            "vllm:spec_decode_num_draft_tokens_total", "vllm:spec_decode_num_accepted_tokens_total",
            "headrace:kv_evictions_total", "headrace:fallback_total", "headrace:clients_gone_total"}
HISTOGRAMS = {"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
              "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
              "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds", "vllm:request_prompt_tokens",
              "vllm:request_generation_tokens", "vllm:iteration_tokens_total", "headrace:step_seconds"}
# Of the server as a whole; the temperature is there where the machine shows one.
OF_THE_SERVER = {"headrace:slow_clients_total": "counter", "headrace:refused_connections_total": "counter",
                 "headrace:body_bytes": "gauge"}
LABEL_SETS = {
    "vllm:request_success_total": {("finished_reason", each) for each in ("stop", "length", "abort", "error")},
    "headrace:clients_gone_total": {("phase", each) for each in ("queue", "prefill", "decode")},
}


class MetricsTest(ServerTest):
    def families(self):
        """Type and samples, {labels: value}, by name."""
        types, samples = {}, {}
        for line in self.server.get("/metrics").body.decode().splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.assertNotIn(name, types)
                types[name] = kind
            elif not line.startswith("#"):
                match = re.fullmatch(r"([a-z0-9_:]+)(?:\{(.*)\})? (\S+)", line)
                labels = frozenset(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
                samples.setdefault(match[1], {})[labels] = float(match[3])
        return types, samples

    def check(self, types, samples):
        model = {("model_name", "tiny"), ("engine", "0")}
        for name, kind in [*((each, "gauge") for each in GAUGES), *((each, "counter") for each in COUNTERS)]:
            self.assertEqual(types.get(name), kind, name)
            for labels in samples[name]:
                self.assertLessEqual(model, labels, name)
        for name in HISTOGRAMS:
            self.assertEqual(types.get(name), "histogram", name)
            for suffix in ("_sum", "_count"):
                self.assertEqual(set(samples[name + suffix]), {frozenset(model)}, name)
            buckets = samples[name + "_bucket"]
            self.assertEqual(buckets[frozenset(model | {("le", "+Inf")})], samples[name + "_count"][frozenset(model)])
        for name, kind in OF_THE_SERVER.items():
            self.assertEqual(types.get(name), kind, name)
        for name, wanted in LABEL_SETS.items():
            self.assertEqual({label for labels in samples[name] for label in labels - model}, wanted, name)
        steps = {label for labels in samples["headrace:fallback_total"] for label, _ in labels}
        self.assertEqual(steps, {"model_name", "engine", "step"})

    def test_each_of_the_contract(self):
        types, samples = self.families()
        self.check(types, samples)  # before anything was asked
        for name in ("vllm:request_success_total", "headrace:clients_gone_total"):
            self.assertEqual(set(samples[name].values()), {0}, name)
        self.assertEqual(self.server.post(COMPLETIONS, SHORT).status, 200)
        name = "vllm:request_success_total"
        self.server.wait_until(lambda: self.server.metric(name, finished_reason="length") == 1, "that it is counted")
        types, samples = self.families()
        self.check(types, samples)
        for name in ("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds",
                     "vllm:request_queue_time_seconds", "vllm:request_prefill_time_seconds",
                     "vllm:request_decode_time_seconds", "vllm:request_prompt_tokens"):
            self.assertEqual(sum(samples[name + "_count"].values()), 1, name)
        self.assertEqual(sum(samples["vllm:inter_token_latency_seconds_count"].values()), 2)
        self.assertEqual(sum(samples["vllm:request_generation_tokens_sum"].values()), 3)


class ExplainTest(ServerTest):
    model = ""
    prompt = "a secret of ours"

    def ask(self, server, **headers):
        reply = server.post(COMPLETIONS, {**SHORT, "prompt": self.prompt}, headers)
        self.assertEqual(reply.status, 200, reply)
        return reply

    def test_another_key_is_told_of_nothing(self):
        keys = self.folder / "keys.txt"
        keys.write_text("one owner=a\nsame owner=a\ntwo owner=b\n")
        server = self.start("tiny", "--api-key-file", keys)
        reply = self.ask(server, **{"X-Api-Key": "one"})
        for name in (reply.json()["id"], reply.headers["x-request-id"]):
            for key, status in (("one", 200), ("same", 200), ("two", 404)):
                self.assertEqual(server.get(f"/explain/{name}", {"X-Api-Key": key}).status, status, key)
            self.assert_error(server.get(f"/explain/{name}"), 401)
        refused = server.get(f"/explain/{reply.json()['id']}", {"X-Api-Key": "two"})
        unknown = server.get("/explain/cmpl-unknown", {"X-Api-Key": "two"})
        self.assertEqual(refused.body, unknown.body)  # nothing tells one from the other

    def test_prompts_are_kept_only_where_that_was_wanted(self):
        for options in ((), ("--explain-text",)):
            server = self.start("tiny", *options)
            reply = server.get("/explain/" + self.ask(server).json()["id"])
            told = reply.json()
            if not options:
                self.assertNotIn(self.prompt.encode(), reply.body)
                self.assertNotIn(b'"ids"', reply.body)
                self.assertNotIn("prompts", told)
                continue
            self.assertEqual(len(told["prompts"]), 1)
            prompt = told["prompts"][0]
            self.assertIn(self.prompt, prompt["text"])
            ids = server.post("/tokenize", {"content": self.prompt, "add_special": True}).json()["tokens"]
            self.assertEqual(prompt["ids"], ids)

    def test_the_last_are_kept(self):
        server = self.start("tiny")
        names = []
        with server.connect() as connection:
            for _ in range(LAST + 1):
                connection.request("POST", COMPLETIONS, {**SHORT, "max_tokens": 1})
                names.append(connection.reply().json()["id"])
            connection.request("GET", "/livez")
            connection.reply()
        self.assertEqual(server.get(f"/explain/{names[-1]}").status, 200)  # once it is there, all are
        # The last is kept once all of it was sent, of which its client may hear first.
        server.wait_until(lambda: server.get(f"/explain/{names[0]}").status == 404, "that the first is gone")
        self.assertEqual(server.get(f"/explain/{names[1]}").status, 200)

    def test_requests_that_failed_or_were_cancelled(self):
        server = ChecksumServer("--throwing-token", THROWING, "--hanging-token", HANGING, "--keep-alive-ms", 200)
        self.addCleanup(server.kill)
        failed = server.post(COMPLETIONS, {"prompt": text_of([3, THROWING]), "max_tokens": 9})
        self.assertEqual(failed.status, 500, failed)
        told = server.get("/explain/" + failed.headers["x-request-id"]).json()
        self.assertEqual(told["end"], "failed")
        self.assertEqual(told["error"], failed.error()["message"])
        self.assertEqual(told["first_token_ms"], 0)
        with server.connect() as connection:
            connection.request("POST", COMPLETIONS, {"prompt": text_of([5, HANGING]), "max_tokens": 9, "stream": True})
            status, headers = connection.head()
            self.assertEqual(status, 200)
        name = headers["x-request-id"]
        server.wait_until(lambda: server.metric("headrace:requests_under_way") == 1, "that it is seen to be gone")
        server.command("release")
        server.wait_until(lambda: server.get(f"/explain/{name}").status == 200, "that it is explained")
        told = server.get(f"/explain/{name}").json()
        self.assertEqual((told["end"], len(told["choices"])), ("client gone", 1))
        self.assertEqual(told["choices"][0]["ended"], "it was cancelled: client gone")
        self.assertEqual(told["choices"][0]["completion_tokens"], 0)


if __name__ == "__main__":
    harness.main()
