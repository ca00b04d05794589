#!/usr/bin/env python3
"""headrace bench: its rows in every format, what it refuses, and the comparison with a peer."""
import csv
import io
import json
import re
import signal
import subprocess
import sys
import time

import harness
import tiny_model

KEYS = ["test", "n_prompt", "n_gen", "parallel", "depth", "avg_ts", "min_ts", "median_ts",
        "stddev_ts", "bound_ts", "fraction_of_bound", "cpu", "isa", "threads", "kv_type", "model"]
MORE_KEYS = {"bytes_per_token", "ops_per_token", "bound_kind", "read_gbs", "peak_gops", "steady"}
SMALL = ["-p", "24", "-n", "6", "-r", "2", "-t", "1"]


class Rows(harness.HeadraceTest):
    def bench(self, *args, **more):
        return self.succeed("bench", "-m", self.tiny(), *args, **more)

    def test_json(self):
        done = self.bench(*SMALL, "-npl", "1,3", "-d", "0,40", "-o", "json")
        rows = done.json()
        self.assertEqual([row["test"] for row in rows],
                         ["pp24", "tg6", "tg6 x3", "tg6 @ d40", "tg6 x3 @ d40"])
        for row in rows:
            self.assertEqual(list(row)[:len(KEYS)], KEYS)
            self.assertLessEqual(MORE_KEYS, set(row))
            self.assertGreater(row["min_ts"], 0)
            self.assertLessEqual(row["min_ts"], row["median_ts"])
            self.assertLessEqual(row["median_ts"], row["max_ts"])
            self.assertGreater(row["bound_ts"], row["max_ts"])
            self.assertAlmostEqual(row["fraction_of_bound"], row["median_ts"] / row["bound_ts"])
            self.assertIn(row["bound_kind"], ("bandwidth", "compute"))
            self.assertEqual(row["threads"], 1)
            self.assertEqual(row["model"], "tiny")
            self.assertEqual(len(row["samples_ts"]), 2)
            self.assertEqual(row["steady"], not row["notes"])
        self.assertEqual([(row["n_prompt"], row["n_gen"], row["parallel"], row["depth"])
                          for row in rows],
                         [(24, 0, 1, 0), (0, 6, 1, 0), (0, 6, 3, 0), (0, 6, 1, 40), (0, 6, 3, 40)])
        self.assertEqual(done.json(), json.loads(done.out))
        self.assertNotIn(b"\x1b", done.out + done.err)

    def test_work_of_a_token(self):
        # Two layers of 64 x (64 + 32 + 32 + 64) and 3 x 64 x 96, a head of 264 x 64.
        tokens = len(tiny_model.vocabulary()[0])
        layers = 2 * (64 * (64 + 32 + 32 + 64) + 3 * 64 * 96)
        row = self.bench(*SMALL, "-p", "0", "-p", "0", "-n", "1", "-o", "json").json()[-1]
        self.assertEqual(row["test"], "tg1")
        attention = 2 * 2 * 64  # scores and values of one key, two layers
        self.assertEqual(row["ops_per_token"], 2 * (layers + tokens * 64 + attention))

    def test_csv(self):
        text = self.bench(*SMALL, "-o", "csv").out.decode()
        lines = list(csv.reader(io.StringIO(text)))
        self.assertEqual(lines[0][:len(KEYS)], KEYS)
        self.assertLessEqual(MORE_KEYS, set(lines[0]))
        self.assertEqual(len(lines), 3)
        for line in lines[1:]:
            self.assertEqual(len(line), len(lines[0]))
        self.assertEqual(lines[1][0], "pp24")
        self.assertGreater(float(lines[1][5]), 0)

    def test_markdown_is_an_aligned_table(self):
        text = self.bench(*SMALL, "-t", "1,2", "--kv-type", "f16,f32").out.decode()
        table = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual(len(table), 2 + 2 * 2 * 2)
        self.assertEqual(len({len(line) for line in table}), 1, text)
        self.assertRegex(table[0], r"^\| threads \| KV  \| test +\| tokens/s \|")
        self.assertIn("of bound", table[0])

    def test_html_is_one_file(self):
        done = self.run_headrace("bench", "-m", self.tiny(), *SMALL, "-o", "html")
        if done.code == 1 and b"Chart.js" in done.err:
            self.assertIn(b"libjs-chart.js", done.err)
            self.skipTest("built without Chart.js")
        page = done.out.decode()
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertTrue(page.rstrip().endswith("</html>"))
        self.assertNotRegex(page, r"https?://|src\s*=\s*[\"'](?!data:)|url\((?!data:)|@import")
        self.assertIn("(c) 2022 Chart.js Contributors", page)
        rows = re.search(r'id="rows">(.*?)</script>', page, re.S).group(1)
        self.assertEqual([row["test"] for row in json.loads(rows)], ["pp24", "tg6"])

    def test_a_name_cannot_break_out_of_the_page(self):
        path = self.tiny("x<script>alert(1)&.gguf")
        done = self.run_headrace("bench", "-m", path, *SMALL, "-p", "0", "-o", "html")
        if done.code == 1:
            self.skipTest("built without Chart.js")
        self.assertNotIn(b"<script>alert", done.out)

    def test_several_formats_and_files(self):
        both = self.bench(*SMALL, "-p", "8", "-n", "0", "-o", "md,csv").out.decode()
        self.assertIn("| pp8", both)
        self.assertIn("\ntest,n_prompt", both)
        name = self.folder / "result"
        done = self.bench(*SMALL, "-o", "json,csv", "--output-file", name)
        self.assertEqual(done.out, b"")
        self.assertEqual(len(json.loads((self.folder / "result.json").read_text())), 2)
        self.assertTrue((self.folder / "result.csv").read_text().startswith("test,"))
        wrong = self.run_headrace("bench", "-m", self.tiny(), *SMALL, "--output-file", "/no/such")
        self.assertEqual(wrong.code, 1)
        self.assertIn(b"/no/such.md", wrong.err)

    def test_lists_as_people_type_them(self):
        names = [row["test"] for row in self.bench(
            "--n-prompt=8-32*2", "-ntg", "2", "-npl", "2-3", "--repetitions", "1", "--json",
            "-fa", "1", "-ngl", "99", "-t", "1").json()]
        self.assertEqual(names, ["pp8", "pp16", "pp32", "tg2 x2", "tg2 x3"])


class Interrupted(harness.HeadraceTest):
    def test_ctrl_c_ends_it_within_a_repetition(self):
        with subprocess.Popen([harness.BINARY, "bench", "-m", self.tiny(context=1 << 16), "-p", "0",
                               "-n", "60000", "-r", "1000", "-t", "1"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.environment()) as process:
            time.sleep(2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(out, b"")
        self.assertIn(b"interrupted", err)


class Refused(harness.HeadraceTest):
    def wrong(self, *args):
        done = self.run_headrace("bench", *args)
        self.assertEqual(done.code, 2, done.err)
        self.assertEqual(done.out, b"")
        self.assertEqual(len(done.error_lines()), 1, done.err)
        return done.err.decode()

    def test_wrong_flags(self):
        path = self.tiny()
        self.assertIn("did you mean --parallel?", self.wrong("-m", path, "--paralel", "1"))
        for args in (["-n", "x"], ["-npl", "0"], ["-p", "-5"], ["-r", "0"], ["-d", "1,,2"],
                     ["-o", "xml"], ["-o", "md,jsn"], ["--isa", "avx2,avx1024"], ["-t", "0"]):
            self.assertIn("expected", self.wrong("-m", path, *args))
        self.assertIn("nothing to measure", self.wrong("-m", path, "-p", "0", "-n", "0"))

    def test_no_such_model(self):
        for flag in (["--json"], ["-o", "json"]):
            done = self.run_headrace("bench", "-m", "no-such-model", *flag)
            self.assertEqual(done.code, 1)
            self.assertEqual(done.json()["error"]["code"], "not_found")

    def test_longer_than_the_model_was_made_for(self):
        done = self.run_headrace("bench", "-m", self.tiny(), "-p", "0", "-n", "100", "-d", "200",
                                 "--json")
        self.assertEqual(done.code, 1)
        error = done.json()["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertIn("300", error["message"])
        self.assertIn("256", error["message"])

    def test_a_context_that_does_not_fit_memory(self):
        # The file claims a context of 2^22 tokens, and weights nobody needs to have read.
        path = self.tiny("long.gguf", context=1 << 22)
        done = self.run_headrace("bench", "-m", path, "-n", "16", "-d", 1 << 21, "-npl", "1024",
                                 "-p", "0", timeout=30)
        self.assertEqual(done.code, 1)
        text = done.err.decode()
        self.assertEqual(len(done.error_lines()), 1, text)
        sums = re.search(r"weights ([\d.]+) MiB \+ KV cache (\d+) MiB \((\d+) tokens over 1024 "
                         r"sequences, (\d+) bytes each\) \+ activations ([\d.]+) MiB \+ memory to "
                         r"measure reading with ([\d.]+) MiB = (\d+) MiB, and may use (\d+) MiB", text)
        self.assertTrue(sums, text)
        weights, cache, tokens, token_bytes, activations, reading, total, budget = map(
            float, sums.groups())
        self.assertEqual(tokens, 1024 * ((1 << 21) + 16))
        self.assertAlmostEqual(cache, tokens * token_bytes / 2**20, delta=1)
        self.assertAlmostEqual(total, weights + cache + activations + reading, delta=3)
        self.assertGreater(total, budget)

    def test_more_threads_than_processors(self):
        done = self.succeed("bench", "-m", self.tiny(), "-p", "8", "-n", "2", "-r", "2", "-t", "32",
                            "--json")
        self.assertRegex(done.err.decode(), r"using \d+ threads? instead of 32: this process may "
                                            r"use no more processors")
        self.assertEqual(len(done.json()), 2)


PEER = """#!{python}
import json, sys
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if "--help" in sys.argv:
    print("-d, --n-depth <n>"); raise SystemExit
if "--no" in sys.argv: raise SystemExit("no such model")
assert args["-r"] == "1" and args["-o"] == "json" and args["-fa"] == "1", args
print(json.dumps([{{"n_prompt": int(args["-p"]), "n_gen": int(args["-n"]), "avg_ts": 1.5}}]))
"""
BATCHED = """#!{python}
import sys
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |")
print("|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|")
print("| %5s | %6s | %4s |    128 |    1.000 |    10.00 |    1.000 |     2.50 |    2.000 |     3.00 |"
      % (args["-npp"], args["-ntg"], args["-npl"]))
"""


class Compare(harness.HeadraceTest):
    def compare(self, *more):
        programs = []
        for name, text in (("peer", PEER), ("batched", BATCHED)):
            path = self.write(name, text.format(python=sys.executable))
            path.chmod(0o755)
            programs.append(path)
        script = harness.SOURCE / "bench" / "compare" / "compare_bench.py"
        return subprocess.run(
            [sys.executable, script, "-m", self.tiny(), "--headrace", harness.BINARY, "--peer",
             programs[0], "--peer-batched", programs[1], "-p", "16", "-n", "4", "-npl", "1,2", "-d",
             "0,20", "-t", "1", "--rounds", "2", *more], capture_output=True, timeout=300,
            env=self.environment(), check=False)

    def test_takes_turns_and_prints_ratios(self):
        done = self.compare("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["threads"], 1)
        self.assertEqual([row["test"] for row in result["results"]],
                         ["pp16", "tg4", "tg4 x2", "tg4 @ d20", "tg4 x2 @ d20"])
        for row in result["results"]:
            self.assertEqual(len(row["headrace_ts"]), 2)
            peer = 2.5 if "x2" in row["test"] else 1.5
            self.assertEqual(row["peer_ts"], [peer, peer])
            self.assertGreaterEqual(row["ratio"], row["ratio_min"])

    def test_a_peer_that_fails(self):
        done = self.compare("--peer-args", "--no 1")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no such model", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr)


if __name__ == "__main__":
    harness.main()
