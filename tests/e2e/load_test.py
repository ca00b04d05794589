#!/usr/bin/env python3
"""headrace bench --load: figures that add up, loads that replay, and what it refuses."""
import csv
import html
import io
import json
import re
import resource
import shutil
import signal
import subprocess
import time

import harness

PERCENTILES = ["p50", "p90", "p95", "p99", "max"]
TIMES = ["ttft", "itl", "tpot", "e2e", "queue"]
SMALL = ["-t", "1", "--input-len", "10..60", "--output-len", "2..20", "--requests", "30",
         "--no-ideal"]


def strict(text):
    """JSON without NaN and infinities."""
    def refuse(name):
        raise AssertionError(f"{name} in JSON")
    return json.loads(text, parse_constant=refuse)


class LoadTest(harness.HeadraceTest):
    def load(self, *args, **more):
        done = self.succeed("bench", "--load", "-m", self.tiny(), *SMALL, *args, "-o", "json", **more)
        return strict(done.out)


class Figures(LoadTest):
    def check(self, row):
        """What must hold of every load."""
        requests = row["request_list"]
        self.assertEqual(len(requests), row["requests"])
        self.assertEqual(row["completed"], row["requests"])
        self.assertEqual(row["failed"], 0)
        self.assertEqual(row["errors"], {})
        for request in requests:
            self.assertEqual(request["output_tokens"], request["wanted_tokens"])
            self.assertLessEqual(request["ttft_ms"], request["e2e_ms"])
            self.assertLessEqual(request["queue_ms"], request["ttft_ms"])
            self.assertLessEqual(request["cached_tokens"], request["prompt_tokens"] - 1)
        for key, of in (("prompt_tokens", "prompt_tokens"), ("cached_tokens", "cached_tokens"),
                        ("output_tokens", "output_tokens")):
            self.assertEqual(row[key], sum(request[of] for request in requests))
        for name in TIMES:
            values = [row[f"{name}_{what}_ms"] for what in PERCENTILES]
            self.assertEqual(values, sorted(values), name)
            self.assertLessEqual(row[f"{name}_mean_ms"], values[-1])
            percents = row["percentiles_ms"][name]
            self.assertEqual(len(percents), 101)
            self.assertEqual(percents, sorted(percents))
            self.assertAlmostEqual(percents[50], values[0])
            self.assertAlmostEqual(percents[100], values[-1])
        self.assertAlmostEqual(row["ttft_max_ms"], max(r["ttft_ms"] for r in requests))
        self.assertAlmostEqual(row["e2e_mean_ms"],
                               sum(r["e2e_ms"] for r in requests) / len(requests))
        seconds = row["duration_s"]
        self.assertAlmostEqual(row["requests_per_s"], len(requests) / seconds)
        self.assertAlmostEqual(row["output_tokens_per_s"], row["output_tokens"] / seconds)
        self.assertAlmostEqual(row["total_tokens_per_s"],
                               (row["prompt_tokens"] + row["output_tokens"]) / seconds)
        last = max(r["arrival_s"] + r["e2e_ms"] / 1e3 for r in requests)
        self.assertAlmostEqual(seconds, last, places=6)
        # Over the whole time the plots have every token, also those that only pad a batch.
        width = seconds / len(row["series"])
        num_plotted = sum(b["output_ts"] for b in row["series"]) * width
        if row["batching"] == "padded":
            self.assertGreaterEqual(num_plotted, row["output_tokens"] - 0.01)
        else:
            self.assertAlmostEqual(num_plotted, row["output_tokens"], delta=0.01)
        self.assertLessEqual(row["running_max"], row["max_sequences"])
        self.assertLessEqual(row["tokens_per_step_mean"], row["max_sequences"])
        for name in ("kv_usage", "slot_utilisation"):
            if row[name + "_min"] is None:  # where all was over before anybody looked
                self.assertEqual(row["kv_usage_max"], 0)
                continue
            self.assertGreaterEqual(row[name + "_min"], 0)
            self.assertLessEqual(row[name + "_min"], row[name + "_mean"])
            self.assertLessEqual(row[name + "_mean"], row[name + "_max"])
            self.assertLessEqual(row[name + "_max"], 1)
        self.assertGreaterEqual(row["steps"], max(r["output_tokens"] for r in requests))
        self.assertEqual(row["failed_steps"], 0)
        self.assertGreater(row["forward_ms"], 0)
        self.assertGreaterEqual(row["processor_s"], 0)
        self.assertEqual(row["steady"], not row["notes"])

    def test_clients(self):
        rows = self.load("--concurrency", "1,6", "-np", "4", "--static-batching")
        self.assertEqual([row["load"] for row in rows],
                         ["concurrency 1", "concurrency 1 static", "concurrency 1 padded",
                          "concurrency 6", "concurrency 6 static", "concurrency 6 padded"])
        self.assertEqual([row["batching"] for row in rows], ["continuous", "static", "padded"] * 2)
        for row in rows:
            self.check(row)
            self.assertEqual(row["max_sequences"], 4)
            self.assertIsNone(row["rate"])
            for request in row["request_list"]:
                self.assertTrue(10 <= request["prompt_tokens"] <= 60)
                self.assertTrue(2 <= request["output_tokens"] <= 20)
        # The same requests get the same answers, however they are served.
        self.assertEqual(len({row["workload"] for row in rows}), 1)
        self.assertEqual(len({row["answers"] for row in rows}), 1)
        self.assertEqual(rows[0]["running_max"], 1)

    def test_the_cache_over_time(self):
        row = self.load("--input-len", "60", "--output-len", "150", "--concurrency", "4")[0]
        self.check(row)
        self.assertGreater(row["kv_usage_max"], 0.5)
        self.assertGreater(row["slot_utilisation_mean"], 0.8)
        self.assertGreater(row["tokens_per_step_max"], 2)
        self.assertGreater(max(bucket["kv_usage"] for bucket in row["series"]), 0.1)
        self.assertGreater(max(bucket["running"] for bucket in row["series"]), 1)

    def test_arrivals(self):
        rows = self.load("--rate", "200,400", "--slo", "ttft:10s,e2e:60s")
        for row in rows:
            self.check(row)
            self.assertEqual(row["good"], 30)
            self.assertEqual(row["good_share"], 1)
            self.assertAlmostEqual(row["good_per_s"], 30 / row["duration_s"])
            self.assertEqual(row["slo"], "ttft:10000ms,e2e:60000ms")
        slow, fast = ([r["arrival_s"] for r in row["request_list"]] for row in rows)
        self.assertEqual(slow, sorted(slow))
        self.assertEqual(slow[0], 0)
        for one, other in zip(slow, fast):
            self.assertAlmostEqual(one, 2 * other, places=6)

    def test_a_bound_that_nobody_keeps(self):
        row = self.load("--slo", "e2e:0.001ms")[0]
        self.assertEqual((row["good"], row["good_share"], row["good_per_s"]), (0, 0, 0))

    def test_seeds_replay(self):
        def work(*args):
            row = self.load("--concurrency", "4", *args)[0]
            lengths = [(r["prompt_tokens"], r["output_tokens"]) for r in sorted(
                row["request_list"], key=lambda r: r["conversation"])]
            return row["workload"], row["answers"], lengths
        first = work("--seed", "7")
        self.assertEqual(work("--seed", "7", "-np", "2", "-ub", "16"), first)
        self.assertEqual(work("--seed", "7", "--no-prefix-cache", "--max-slowdown", "1.5"), first)
        other = work("--seed", "8")
        for one, two in zip(first, other):
            self.assertNotEqual(one, two)
        warm = work("--seed", "7", "--temp", "1")
        self.assertEqual(warm[0], first[0])
        self.assertNotEqual(warm[1], first[1])
        self.assertEqual(work("--seed", "7", "--temp", "1", "--concurrency", "1"), warm)

    def test_shared_prefixes(self):
        args = ["--prefix-len", "80", "--prefixes", "2", "--input-len", "8", "--concurrency", "4"]
        row = self.load(*args)[0]
        self.check(row)
        self.assertEqual({r["prompt_tokens"] for r in row["request_list"]}, {88})
        # All but the first of each prefix find five blocks of it.
        self.assertGreater(row["prefix_hit_rate"], 0.75)
        self.assertEqual(row["cached_tokens"] / row["prompt_tokens"], row["prefix_hit_rate"])
        off = self.load(*args, "--no-prefix-cache")[0]
        self.check(off)
        self.assertEqual((off["prefix_hit_rate"], off["cached_tokens"]), (0, 0))
        self.assertEqual(off["answers"], row["answers"])

    def test_conversations(self):
        row = self.load("--turns", "3", "--requests", "6", "--output-len", "2..9")[0]
        self.check(row)
        self.assertEqual((row["conversations"], row["requests"]), (6, 18))
        by_place = {(r["conversation"], r["turn"]): r for r in row["request_list"]}
        for (conversation, turn), request in by_place.items():
            if turn == 0:
                continue
            before = by_place[conversation, turn - 1]
            self.assertGreaterEqual(request["prompt_tokens"],
                                    before["prompt_tokens"] + before["output_tokens"] + 10)
            self.assertGreaterEqual(request["arrival_s"],
                                    before["arrival_s"] + before["e2e_ms"] / 1e3 - 1e-6)
        self.assertGreater(row["prefix_hit_rate"], 0.2)

    def test_a_small_cache_changes_no_answer(self):
        whole = self.load("--concurrency", "8", "--output-len", "60", "--input-len", "100")[0]
        tight = self.load("--concurrency", "8", "--output-len", "60", "--input-len", "100",
                          "--kv-memory", str(whole["kv_bytes"] // 3))[0]
        self.check(tight)
        self.assertLess(tight["kv_tokens"], whole["kv_tokens"] / 2)
        self.assertEqual(tight["answers"], whole["answers"])
        self.assertGreater(tight["memory_rungs"]["stop_admitting"] + tight["preemptions"], 0)

    def test_a_time_instead_of_a_number(self):
        done = self.succeed("bench", "--load", "-m", self.tiny(), "-t", "1", "--no-ideal",
                            "--input-len", "20", "--output-len", "10", "--duration", "0.3",
                            "--concurrency", "2", "--json")
        row = strict(done.out)[0]
        self.check(row)
        self.assertGreaterEqual(row["requests"], 2)
        self.assertLess(max(r["arrival_s"] for r in row["request_list"]), 0.3)
        self.assertGreaterEqual(row["duration_s"], 0.25)

    def test_the_ideal(self):
        done = self.succeed("bench", "--load", "-m", self.tiny(), "-t", "1", "--input-len", "30",
                            "--output-len", "12", "--concurrency", "3", "--requests", "12", "-r",
                            "2", "-ub", "64", "--json")
        row = strict(done.out)[0]
        self.check(row)
        self.assertEqual([test["test"] for test in row["rates"]],
                         ["pp64", "tg32 @ d20", "tg32 x2 @ d20", "tg32 x3 @ d20"])
        self.assertEqual(row["ideal_batch"], 3)
        self.assertEqual(row["ideal_prompt_tokens"], row["prompt_tokens"] - row["cached_tokens"])
        self.assertEqual(row["ideal_decoded_tokens"], row["output_tokens"] - 12)
        self.assertEqual(row["prefill_ts"], row["rates"][0]["median_ts"])
        self.assertAlmostEqual(row["decode_ts"] / row["rates"][-1]["median_ts"], 1)
        self.assertAlmostEqual(row["ideal_s"],
                               row["ideal_prompt_tokens"] / row["prefill_ts"] +
                               row["ideal_decoded_tokens"] / row["decode_ts"])
        self.assertAlmostEqual(row["fraction_of_ideal"], row["ideal_s"] / row["occupied_s"])
        self.assertGreater(row["fraction_at_batches"], 0)
        self.assertAlmostEqual(row["bound_s"],
                               row["ideal_prompt_tokens"] / row["rates"][0]["bound_ts"] +
                               row["ideal_decoded_tokens"] / row["rates"][-1]["bound_ts"])
        self.assertAlmostEqual(row["fraction_of_bound"], row["bound_s"] / row["occupied_s"])
        self.assertLess(row["fraction_of_bound"], 1)


class Formats(LoadTest):
    def test_csv(self):
        text = self.succeed("bench", "--load", "-m", self.tiny(), *SMALL, "--concurrency", "1,2",
                            "-o", "csv").out.decode()
        lines = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[1]["load"], "concurrency 2")
        self.assertGreater(float(lines[1]["output_tokens_per_s"]), 0)
        self.assertEqual(lines[1]["ideal_s"], "")
        self.assertNotIn("request_list", lines[0])

    def test_markdown_is_aligned_tables(self):
        done = self.succeed("bench", "--load", "-m", self.tiny(), *SMALL, "--concurrency", "1,2",
                            "--kv-type", "f16,f32", "--static-batching")
        text = done.out.decode()
        tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
        self.assertEqual([len(table) for table in tables], [2 + 12, 2 + 12 * 5, 2 + 12])
        for table in tables:
            self.assertEqual(len({len(line) for line in table}), 1, text)
        self.assertIn("| np  |", text.replace("  np |", " np  |"))
        self.assertIn("| KV  |", text)
        self.assertIn("prompts of 10..60 tokens, answers of 2..20; greedy; seed 1;", text)
        self.assertNotIn("bug", done.err.decode())

    def test_html_is_one_file(self):
        path = self.tiny("x<script>alert(1)&.gguf")
        done = self.run_headrace("bench", "--load", "-m", path, *SMALL, "-o", "html")
        if done.code == 1 and b"Chart.js" in done.err:
            self.skipTest("built without Chart.js")
        page = done.out.decode()
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertTrue(page.rstrip().endswith("</html>"))
        self.assertNotRegex(page, r"https?://|src\s*=\s*[\"'](?!data:)|url\((?!data:)|@import")
        self.assertNotIn("<script>alert", page)
        for mark in ("/*STYLE*/", "/*PARTS*/", "/*CHART_JS*/", "@ROWS@"):
            self.assertNotIn(mark, page)
        rows = strict(re.search(r'id="rows">(.*?)</script>', page, re.S).group(1))
        self.assertEqual(rows[0]["load"], "concurrency 16")
        self.assertEqual(len(rows[0]["series"]), 150)

    def test_the_page_as_a_browser_draws_it(self):
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if not browser:
            self.skipTest("no browser here")
        done = self.run_headrace("bench", "--load", "-m", self.tiny(), *SMALL, "-o", "html", "--slo",
                                 "ttft:10s", "--concurrency", "1,2,4")
        if done.code == 1 and b"Chart.js" in done.err:
            self.skipTest("built without Chart.js")
        page = done.out.decode()
        begin, end = re.search(r'id="rows">(.*?)</script>', page, re.S).span(1)
        rows = strict(page[begin:end])
        # What a page must be able to show, whatever the machine does today.
        for key in ("ideal_s", "fraction_of_ideal", "fraction_at_batches", "fraction_of_bound"):
            rows[0][key] = 1.23
        rows[1]["memory_rungs"]["evict_prefixes"] = 77
        rows[1]["percentiles_ms"]["itl"] = [0] * 50 + [0.03] + [9.0] * 50
        look = """<script>document.title = JSON.stringify({
            over: [...document.querySelectorAll(".scroll")].map(box => box.scrollWidth - box.clientWidth),
            short: document.getElementById("short").textContent,
            shares: Chart.getChart(document.querySelector("#bars canvas")).scales.x.max,
            good: Chart.getChart(document.querySelector("#good-bars canvas")).data.datasets[0].data,
            curve: Chart.getChart("against-good").data.datasets[0].data.length,
            ticks: Chart.getChart(document.querySelector("canvas[data-times=itl]")).scales.x.ticks
              .map(tick => tick.label).filter(text => text)});</script></body>"""
        path = self.write("page.html", page[:begin] + json.dumps(rows).replace("<", "\\u003c") +
                          page[end:].replace("</body>", look))
        drawn = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
             f"--user-data-dir={self.folder / 'browser'}", "--virtual-time-budget=3000", "--dump-dom",
             path.as_uri()], capture_output=True, timeout=120, env=self.environment())
        title = re.search(r"<title>(\{.*?\})</title>", drawn.stdout.decode())
        self.assertIsNotNone(title, drawn.stderr.decode()[-2000:])
        seen = json.loads(html.unescape(title.group(1)))
        self.assertEqual(set(seen["over"]), {0}, f"tables that leave their card: {seen}")
        self.assertIn("evict prefixes", seen["short"])
        self.assertIn("77", seen["short"])
        self.assertGreaterEqual(seen["shares"], 123)
        self.assertEqual(seen["good"], [100, 100, 100])
        self.assertEqual(seen["curve"], 3)
        self.assertRegex(seen["ticks"][0], "^(?!0 )[0-9.]+ (\u00b5s|ms)$")  # no logarithm is that of 0

    def test_files(self):
        self.succeed("bench", "--load", "-m", self.tiny(), *SMALL, "-o", "md,json",
                     "--output-file", self.folder / "load")
        self.assertEqual(len(strict((self.folder / "load.json").read_text())), 1)
        self.assertIn("| concurrency 16", (self.folder / "load.md").read_text())


class Targets(LoadTest):
    """Measuring takes long: nothing of it may be lost."""

    def bench(self, *args):
        return self.run_headrace("bench", "-m", self.tiny(), "-t", "1", *args, timeout=20)

    def test_what_cannot_be_written_is_said_before_anything_is_measured(self):
        (self.folder / "way.md").mkdir()
        (self.folder / "old.md").write_text("old")
        for load in (["--load", "--duration", "1000"], ["-n", "200", "-p", "0", "-r", "1000"]):
            for name, code, word in (("none/x", 1, "none/x.md"), ("outd/", 2, "names a folder"),
                                     (".", 2, "names a folder"), ("way", 1, "way.md")):
                done = self.bench(*load, "--output-file", name)
                self.assertEqual(done.code, code, done.err)
                self.assertIn(word, done.err.decode())
                self.assertEqual(len(done.error_lines()), 1, done.err)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()
                                if path.name not in ("home", "store")),
                         ["old.md", "tiny.gguf", "way.md"])
        self.bench("--load", *SMALL, "--input-len", "9999", "--output-file", "old")
        self.assertEqual((self.folder / "old.md").read_text(), "old")

    def test_what_no_file_takes_at_the_end_is_printed(self):
        for args in (["--load", *SMALL], ["-n", "2", "-p", "0", "-r", "1"]):
            done = subprocess.run(
                [harness.BINARY, "bench", "-m", self.tiny(), "-t", "1", *args, "-o", "json",
                 "--output-file", "full"], capture_output=True, timeout=60, cwd=self.folder,
                env=self.environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(b"full.json: cannot be written", done.stderr)
            self.assertEqual(len(strict(done.stdout)), 1)


class Refused(LoadTest):
    def wrong(self, *args):
        done = self.run_headrace("bench", "-m", self.tiny(), *args)
        self.assertEqual(done.code, 2, done.err)
        self.assertEqual(done.out, b"")
        self.assertEqual(len(done.error_lines()), 1, done.err)
        return done.err.decode()

    def test_options_of_the_other_kind(self):
        self.assertIn("--turns: needs --load (add --load", self.wrong("--turns", "2"))
        self.assertIn("--rate: needs --load", self.wrong("--rate", "2"))
        self.assertIn("-p: has no meaning with --load (give the length of prompts with "
                      "--input-len)", self.wrong("--load", "-p", "5"))
        self.assertIn("--output-len", self.wrong("--load", "-n", "5"))
        self.assertIn("--prefix-len", self.wrong("--load", "-d", "5"))

    def test_contradictions(self):
        self.assertIn("contradicts --rate (give --rate for",
                      self.wrong("--load", "--rate", "1", "--concurrency", "2"))
        self.assertIn("contradicts --requests",
                      self.wrong("--load", "--requests", "1", "--duration", "2"))
        self.assertIn("--prefix-len", self.wrong("--load", "--prefixes", "2"))

    def test_bad_values(self):
        for option, value in (("--rate", "0"), ("--rate", ""), ("--concurrency", "0"),
                              ("--requests", "0"), ("--duration", "0"), ("--warmup", "-1"),
                              ("--input-len", "0"), ("--input-len", "5..2"),
                              ("--output-len", "normal:5"), ("--prefix-len", "-1"),
                              ("--prefixes", "0"), ("--turns", "0"), ("--slo", "ttft:5"),
                              ("--slo", "x:5ms"), ("--kv-memory", "lots"), ("--temp", "-1"),
                              ("--seed", "-1"), ("--max-wait-ms", "-1"), ("--max-slowdown", "1"),
                              ("-np", "0")):
            text = self.wrong("--load", option, value)
            self.assertIn("expected", text, option)
            self.assertIn(option + ": ", text)
        self.assertIn("did you mean --concurrency?", self.wrong("--load", "--concurency", "1"))

    def failed(self, *args):
        done = self.run_headrace("bench", "--load", "-m", self.tiny(), *args, "--json")
        self.assertEqual(done.code, 1, done.err)
        self.assertEqual(len(done.error_lines()), 1, done.err)
        return done.json()["error"]

    def test_longer_than_the_model_was_made_for(self):
        error = self.failed("--input-len", "100..200", "--output-len", "57")
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("257 tokens", error["message"])
        self.assertIn("256", error["message"])
        self.assertIn("--input-len", error["hint"])
        error = self.failed("--input-len", "20", "--output-len", "20", "--turns", "7")
        self.assertIn("a conversation of 280 tokens", error["message"])

    def test_a_cache_that_is_too_small(self):
        error = self.failed("--input-len", "100", "--output-len", "50", "--kv-memory", "20k",
                            "-np", "1", "--no-ideal")
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("150 tokens", error["message"])
        self.assertIn("--kv-memory", error["hint"])
        error = self.failed("--input-len", "100", "--output-len", "50", "--kv-memory", "1k",
                            "--no-ideal")
        self.assertEqual(error["where"], "--kv-memory")

    def test_more_than_the_memory(self):
        path = self.tiny("long.gguf", context=1 << 22)
        done = self.run_headrace("bench", "--load", "-m", path, "--input-len", 1 << 21, "-np",
                                 "1024", "--json", timeout=30)
        self.assertEqual(done.code, 1)
        self.assertEqual(done.json()["error"]["code"], "resource_exhausted")
        self.assertIn("-np", done.json()["error"]["hint"])

    def test_ctrl_c_ends_it(self):
        out, err = self.interrupted(signal.SIGINT, "--duration", "1000", "--output-len", "200",
                                    "--warmup", "1000000")
        self.assertEqual(strict(out)["error"]["code"], "cancelled")
        self.assertIn("interrupted", err)

    def test_what_was_measured_before_an_interrupt_is_told(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            out, err = self.interrupted(sent, "--concurrency", "1,4", "--output-len", "20",
                                        "--duration", "1.5")
            rows = strict(out)
            self.assertIn("interrupted; 2 loads are told of", err)
            self.assertEqual([row["load"] for row in rows], ["concurrency 1", "concurrency 4"])
            self.assertNotIn("interrupted", "".join(rows[0]["notes"]))
            self.assertIn("interrupted", rows[1]["notes"][-1])
            for row in rows:
                self.assertGreater(row["completed"], 0)
                self.assertEqual((row["failed"], len(row["request_list"])), (0, row["requests"]))
            self.assertLess(rows[1]["duration_s"], 1.4)

    def interrupted(self, sent, *args):
        """Two seconds after its beginning."""
        with subprocess.Popen([harness.BINARY, "bench", "--load", "-m", self.tiny(), "-t", "1",
                               "--input-len", "20", "--no-ideal", "--json", *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment()) as process:
            time.sleep(2.2)
            process.send_signal(sent)
            out, err = process.communicate(timeout=60)
        # As a shell sees Ctrl-C where nothing catches it: 130.
        self.assertEqual(process.returncode, -signal.SIGINT, err)
        return out, err.decode()


if __name__ == "__main__":
    harness.main()
