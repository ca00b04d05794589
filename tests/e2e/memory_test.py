#!/usr/bin/env python3
"""Memory of a run: its peak (at most 1.25 times the file, and the KV cache; skipped without models),
what it takes of its own where weights stay in the file, and clear errors where there is not
enough."""
import os
import pathlib
import re
import resource
import subprocess

import harness
import tiny_model

CONTEXT = 512


class PeakMemory(harness.HeadraceTest):
    def peak(self, name):
        model = harness.real_model(name)
        memory = self.succeed("inspect", model, "-c", CONTEXT, "--json").json()["memory"]
        process = subprocess.Popen(
            [harness.BINARY, "run", "-m", model, "--raw", "-p", "The capital of France is", "-n",
             "8", "--temp", "0", "-c", str(CONTEXT), "--ignore-eos"],
            stdout=subprocess.DEVNULL, env=self.environment())
        status, usage = os.wait4(process.pid, 0)[1:]
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        peak = usage.ru_maxrss * 1024
        file_bytes = pathlib.Path(model).stat().st_size
        allowed = 1.25 * file_bytes + memory["kv_bytes"]
        print(f"{name}: peak {peak / 1e6:.1f} MB, file {file_bytes / 1e6:.1f} MB, KV "
              f"{memory['kv_bytes'] / 1e6:.1f} MB, {peak / allowed:.1%} of what is allowed")
        self.assertLess(peak, allowed)

    def test_smollm2(self):
        self.peak("smollm2-135m")

    def test_gemma3(self):
        self.peak("gemma3-270m")


class WeightsInTheFile(harness.HeadraceTest):
    """--no-pack. The limit is of memory that belongs to no file: heap, stacks of threads."""

    def under_limit(self, limit, *args):
        done = subprocess.run(
            [harness.BINARY, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=120, env=self.environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        return harness.Outcome(done.returncode, done.stdout, done.stderr)

    def test_memory_does_not_grow_with_the_file(self):
        limit = 60 << 20
        answers = []
        for layers in (10, 200):  # 32 MB and 640 MB
            path = self.tiny(f"holes{layers}.gguf", hole_layers=layers, feed_forward=4096)
            args = ("run", "-m", path, "--raw", "-p", "Hello", "-n", "4", "--temp", "0", "-c", "32",
                    "-ub", "16", "-t", "2", "--ignore-eos")
            done = self.under_limit(limit, *args, "--no-pack")
            self.assertEqual(done.code, 0, done.err.decode())
            self.assertNotIn(b"clamped", done.err)
            answers.append(done.out)
            for isa in ("reference", "avx2"):
                other = self.under_limit(limit, *args, "--no-pack", "--isa", isa)
                if b"this machine" not in other.err:
                    self.assertEqual(other.code, 0, other.err.decode())
        # Layers of zeros change nothing.
        self.assertEqual(*answers)
        packed = self.under_limit(limit, *args)
        self.assertEqual(packed.code, 1, "packed weights fit the limit: it shows nothing")
        self.assertIn("not enough memory", packed.err.decode())
        plan = self.succeed("inspect", path, "--no-pack", "-c", 32, "--json").json()["memory"]
        self.assertLess(plan["weight_bytes"] + plan["scratch_bytes"], 32 << 20)
        self.assertGreater(plan["file_bytes"], 600 << 20)
        plan = self.succeed("inspect", path, "-c", 32, "--json").json()["memory"]
        self.assertGreater(plan["weight_bytes"], 600 << 20)
        self.assertEqual(plan["file_bytes"], 0)

    def test_a_model_larger_than_memory_is_planned_for(self):
        # What stays in the file needs no memory, so this is not too large, only put together wrongly.
        path = self.tiny("huge.gguf", sparse_rows=200 * 10**9 // (4 * tiny_model.EMBEDDING))
        done = self.run_headrace("run", "-m", path, "-p", "Hi", "--no-pack", timeout=30)
        self.assertEqual(done.code, 1)
        self.assertNotIn("MiB", done.err.decode())
        self.assertIn("output.weight", done.err.decode())
        packed = self.run_headrace("run", "-m", path, "-p", "Hi", timeout=30)
        self.assertIn("--no-pack", packed.err.decode())

    def test_a_file_that_is_cut_ends_the_answer(self):
        path = self.tiny("long.gguf", context=16384)
        process = subprocess.Popen(
            [harness.BINARY, "run", "-m", path, "--raw", "-p", "Hello", "-n", "16000", "--temp", "0",
             "--ignore-eos", "--no-pack", "-t", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment())
        self.assertTrue(process.stdout.read(1))
        os.truncate(path, path.stat().st_size // 2)
        err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("became shorter", err.decode())

    def real(self, name):
        model = harness.real_model(name)
        plan = self.succeed("inspect", model, "-c", CONTEXT, "--no-pack", "--json").json()["memory"]
        args = ("run", "-m", model, "--raw", "-p", "The capital of France is", "-n", "8", "--temp",
                "0", "-c", CONTEXT, "--ignore-eos", "-t", "2")
        # Besides: tokenizer and program, and two stacks.
        limit = (plan["weight_bytes"] + plan["scratch_bytes"] + plan["kv_bytes"] +
                 plan["activation_bytes"] + (46 << 20))
        in_file = self.under_limit(limit, *args, "--no-pack")
        self.assertEqual(in_file.code, 0, in_file.err.decode())
        self.assertEqual(in_file.out, self.succeed(*args).out)
        print(f"{name}: file {pathlib.Path(model).stat().st_size / 1e6:.1f} MB, ran in "
              f"{limit / 1e6:.1f} MB")

    def test_smollm2(self):
        self.real("smollm2-135m")

    def test_gemma3(self):
        self.real("gemma3-270m")


class TooLittle(harness.HeadraceTest):
    def test_a_model_larger_than_memory(self):
        # 200 GB of weights that nobody reads: the file is a hole.
        path = self.tiny("huge.gguf", sparse_rows=200 * 10**9 // (4 * tiny_model.EMBEDDING))
        for isa in ([], ["--isa", "reference"]):
            done = self.run_headrace("run", "-m", path, "-p", "Hi", *isa, timeout=30)
            text = done.err.decode()
            self.assertEqual(done.code, 1, text)
            self.assertIn("resource_exhausted", self.run_headrace(
                "run", "-m", path, "-p", "Hi", "--json", *isa, timeout=30).out.decode())
            numbers = [int(number) for number in re.findall(r"(\d+) MiB", text)]
            self.assertEqual(len(numbers), 3, text)
            needed, weights, available = numbers
            self.assertGreater(needed, 200 * 10**9 >> 20, text)
            self.assertLess(available, weights, text)
            self.assertIn("smaller model", text)

    def test_a_cache_that_a_limit_forbids(self):
        path = self.tiny("long.gguf", context=1_000_000)  # 256 MB of KV
        limit = 200 << 20
        done = subprocess.run(
            [harness.BINARY, "run", "-m", path, "-p", "Hi", "-n", "1", "-t", "1"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60, env=self.environment(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        self.assertIn("not enough memory for a cache of 1000000 tokens", text)
        self.assertIn("smaller context with -c", text)

    def test_threads_that_cannot_start(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor: no thread is started")

        def limit():
            # Enough for the program, not for a second stack.
            resource.setrlimit(resource.RLIMIT_STACK, (4 << 30, 4 << 30))
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        done = subprocess.run(
            [harness.BINARY, "run", "-m", self.tiny(), "-p", "Hi", "-n", "1", "-t", "2"],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60, preexec_fn=limit,
            env=self.environment())
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        self.assertIn("cannot start 2 threads", text)
        self.assertIn("-t", text)

    def test_more_threads_than_processors(self):
        done = self.succeed("run", "-m", self.tiny(), "-p", "Hi", "-n", "1", "-t", "1000")
        self.assertRegex(done.err.decode(), r"using \d+ threads? instead of 1000")


if __name__ == "__main__":
    harness.main()
