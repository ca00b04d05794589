#!/usr/bin/env python3
"""headrace serve: the phases of a request beside what the machine allows, in /explain, 'headrace
explain', /metrics and the dashboard's figures."""
import json
import re
import subprocess
import time
import urllib.error
import urllib.request

import harness

PATIENCE = 60


class Bounds(harness.HeadraceTest):
    def serve(self, *args):
        """Starts a server; returns its address."""
        log = open(self.folder / "log", "wb+")
        self.addCleanup(log.close)
        process = subprocess.Popen([harness.BINARY, "serve", "-m", self.tiny(), "--port", "0", "-t",
                                    "1", *args], stderr=log, stdin=subprocess.DEVNULL,
                                   stdout=log, env=self.environment(), cwd=self.folder)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.terminate)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None:
            found = re.search(r"serves at (http://\S+)", (self.folder / "log").read_text())
            if found:
                return found[1]
            time.sleep(.02)
        self.fail((self.folder / "log").read_text())

    @staticmethod
    def get(url, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return reply.read().decode()

    def ask(self, address, prompt_tokens=40, max_tokens=12):
        """One streamed completion; returns its id."""
        text = self.get(address + "/v1/completions",
                        {"prompt": list(range(5, 5 + prompt_tokens)), "max_tokens": max_tokens,
                         "ignore_eos": True, "stream": True})
        self.assertIn("data: [DONE]", text)
        return re.search(r'"id":\s*"([^"]+)"', text)[1]

    def explained(self, address, name):
        """What was kept of a request comes a moment after its last byte."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return json.loads(self.get(f"{address}/explain/{name}"))
            except urllib.error.HTTPError as fault:
                if fault.code != 404 or time.monotonic() > end:
                    raise
            time.sleep(.02)

    def metrics(self, address):
        lines = self.get(address + "/metrics").splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))

    def test_each_phase_beside_its_bound(self):
        address = self.serve()
        name = self.ask(address)
        choice = self.explained(address, name)["choices"][0]
        bounds = choice["bounds"]
        self.assertEqual(set(bounds), {"prefill", "decode"})
        self.assertEqual(bounds["prefill"]["tokens"], 40)
        self.assertEqual(bounds["decode"]["tokens"], 11)
        prefill = [step for step in choice["steps"] if step["rows"] > 1]
        self.assertAlmostEqual(bounds["prefill"]["ms"], sum(step["ms"] for step in prefill))
        for phase in bounds.values():
            self.assertGreater(phase["bound_ms"], 0)
            self.assertAlmostEqual(phase["fraction_of_bound"], phase["bound_ms"] / phase["ms"])
            self.assertAlmostEqual(phase["bound_tokens_per_second"],
                                   1e3 * phase["tokens"] / phase["bound_ms"], 3)
            self.assertLess(phase["fraction_of_bound"], 1, "a tiny model is far from it")
        text = self.succeed("explain", name, "--url", address).out.decode()
        self.assertEqual(len(re.findall(r"tokens/s; (?:memory|arithmetic) allows one sequence [\d.]+: "
                                        r"\d+ % of it", text)), 2, text)

    def test_metrics(self):
        address = self.serve()
        labels = '{model_name="tiny",engine="0"}'
        share = "headrace:fraction_of_bandwidth" + labels
        self.assertEqual(float(self.metrics(address)[share]), 0)
        self.ask(address, max_tokens=100)
        first = self.metrics(address)
        self.assertGreater(float(first[share]), 0)
        self.assertLess(float(first[share]), 1.5)
        # Another who asks takes nothing away from the next.
        if float(self.metrics(address)[share]) > 0:
            self.assertEqual(self.metrics(address)[share], first[share])
        self.assertGreater(float(first["headrace:decode_read_bytes_total" + labels]), 0)
        self.assertGreater(float(first["headrace:decode_seconds_total" + labels]), 0)
        self.assertEqual(float(first["headrace:prompt_tokens_computed_total" + labels]), 40)
        for phase in ("prefill", "decode"):
            bound = f'headrace:bound_tokens_per_second{{model_name="tiny",engine="0",phase="{phase}"}}'
            self.assertGreater(float(first[bound]), 0)
        for what in ("draft", "accepted"):
            self.assertEqual(float(first[f"vllm:spec_decode_num_{what}_tokens_total" + labels]), 0)
        model = json.loads(self.get(address + "/dashboard/data"))["models"][0]
        self.assertGreater(model["bound"]["prefill_tokens_per_second"], 0)
        self.assertGreater(model["bound"]["decode_tokens_per_second"], 0)
        self.assertEqual(model["computed_prompt_tokens"], 40)

    def test_without_bounds(self):
        address = self.serve("--no-bounds")
        name = self.ask(address)
        self.assertEqual(self.explained(address, name)["choices"][0]["bounds"], {})
        self.assertNotIn("allows one sequence",
                         self.succeed("explain", name, "--url", address).out.decode())
        names = " ".join(self.metrics(address))
        self.assertNotIn("fraction_of_bandwidth", names)
        self.assertNotIn("bound_tokens_per_second", names)
        self.assertIn("headrace:decode_seconds_total", names)
        model = json.loads(self.get(address + "/dashboard/data"))["models"][0]
        self.assertIsNone(model["bound"]["decode_tokens_per_second"])


if __name__ == "__main__":
    harness.main()
